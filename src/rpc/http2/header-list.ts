/** The headers of one message, validated as they arrive: what HTTP/2 forbids makes a message malformed. RFC 9113, section 8. */
import type { Headers } from '../../wire/http2/hpack.ts'
import { maxHeaderList } from './limits.ts'

/** The message a header list belongs to. */
export type HeaderKind = 'request' | 'response' | 'trailers'

const pseudo: Record<HeaderKind, ReadonlySet<string>> = {
  request: new Set([':method', ':scheme', ':path', ':authority']),
  response: new Set([':status']),
  trailers: new Set(),
}

/** Connection-specific headers of HTTP/1, which HTTP/2 forbids. */
const forbidden = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'])

/** Names that were found valid, so that each is checked once. */
const good = new Set<string>()
const mostKept = 1000

function isName(name: string): boolean {
  if (good.has(name)) return true
  if (!/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name)) return false
  if (good.size < mostKept && name.length < 64) good.add(name)
  return true
}

const control = /[\0\r\n]/

/** Bytes of memory of a header beyond those that HTTP/2 counts. */
const headerMemory = 96

/** Collects headers. */
export class HeaderList {
  readonly headers: Headers = Object.create(null)
  readonly #kind: HeaderKind
  #size = 0
  #count = 0
  #regular = false
  #fault: string | undefined

  constructor(kind: HeaderKind) {
    this.#kind = kind
  }

  /** Whether the list exceeds the limit; headers after that are dropped. */
  get tooLarge(): boolean {
    return this.#size > maxHeaderList
  }

  /** Approximate memory of the headers in bytes. */
  get memory(): number {
    return this.#size + this.#count * headerMemory
  }

  /** Adds one header. */
  readonly take = (name: string, value: string): void => {
    this.#size += name.length + value.length + 32
    this.#count++
    if (this.#size > maxHeaderList || this.#fault !== undefined) return
    const known = this.headers[name]
    if (name.charCodeAt(0) === 0x3a) {
      if (this.#regular) this.#fault = `"${name}" after other headers`
      else if (!pseudo[this.#kind].has(name)) this.#fault = `"${name}" does not belong here`
      else if (known !== undefined) this.#fault = `"${name}" twice`
    } else {
      this.#regular = true
      if (!isName(name)) this.#fault = 'malformed header name'
      else if (forbidden.has(name)) this.#fault = `header "${name}"`
      else if (name === 'te' && value !== 'trailers') this.#fault = `te is "${value}"`
    }
    if (control.test(value)) this.#fault = `malformed value of "${name}"`
    if (known === undefined) this.headers[name] = value
    else if (typeof known === 'string') this.headers[name] = [known, value]
    else known.push(value)
  }

  /** The reason why the message is malformed; undefined when it is valid. */
  fault(): string | undefined {
    if (this.#fault !== undefined || this.tooLarge) return this.#fault
    const { headers } = this
    if (this.#kind === 'request') {
      if (headers[':method'] === undefined) return 'request without method'
      if (headers[':method'] !== 'CONNECT' && (headers[':scheme'] === undefined || !headers[':path']))
        return 'request without scheme or path'
    }
    if (this.#kind === 'response' && !/^[1-5]\d\d$/.test(String(headers[':status']))) return 'response without status'
    return undefined
  }
}
