/**
 * The node's DNS resolver: forwards to upstream servers, caches answers, serves UDP and TCP. Equal queries in flight are
 * sent upstream once. Answers are passed on byte for byte, so that DNSSEC records reach clients that request them.
 */
import { type Logger, silent } from '../../../cosi/log.ts'
import { splitHostPort } from '../../../wire/host-port.ts'
import { Cache, type Kept, shownAt } from './cache.ts'
import { listen } from './listener.ts'
import {
  answerAddresses,
  answerBadVersion,
  answerWith,
  type Extension,
  type Question,
  readExtension,
  readQueryName,
  readQuestion,
  responseCode,
  truncated,
} from './message.ts'
import { type Timeouts, Upstreams } from './upstream.ts'

/** Maximum number of upstream queries in flight. Further queries fail at once. */
const mostUnderWay = 1_000
/** TTL of answers about cluster members, in seconds: short, since members come and go. */
const ownLifetime = 10
/** Maximum number of queries cached byte for byte. A few suffice, since programs repeat the same queries. */
const mostExact = 4_096
/** Larger queries are not cached byte for byte, to bound the memory used. */
const usualQuery = 512
const usualAnswer = 4_096
const smallest = 512

/** A repeated query: its answer, and the payload size its client accepts. */
interface Exact {
  readonly kept: Kept
  readonly end: number
  readonly limit: number
}

/** A caching forwarder. */
export class Resolver {
  readonly #cache = new Cache()
  readonly #exact = new Map<string, Exact>()
  readonly #underWay = new Map<string, Promise<Buffer | undefined>>()
  readonly #listeners = new Map<string, { close(): void }>()
  readonly #upstreams: Upstreams
  #names: ReadonlyMap<string, readonly Uint8Array[]> = new Map()

  /** `now` returns seconds of a monotonic clock. */
  constructor(
    readonly now: () => number = () => performance.now() / 1000,
    timeouts?: Timeouts,
    readonly log: Logger = silent,
  ) {
    this.#upstreams = new Upstreams(timeouts)
  }

  /** Sets the upstream servers, in order of preference. If they changed, the cache is cleared. */
  use(servers: readonly string[]): void {
    if (!this.#upstreams.use(servers)) return
    this.#cache.clear()
    this.#exact.clear()
  }

  /** Sets the names (lower case) this resolver answers itself, with their addresses as bytes. */
  know(names: ReadonlyMap<string, readonly Uint8Array[]>): void {
    this.#names = names
    this.#exact.clear()
  }

  /** Whether a server answered the last query. */
  healthy(server: string): boolean {
    return this.#upstreams.healthy(server)
  }

  /** Registers a callback for changes of a server's health. */
  onHealth(changed: () => void): void {
    this.#upstreams.onHealth(changed)
  }

  /** Listens on exactly these addresses (`127.0.0.53:53`), over UDP and TCP. Rejects if one cannot be bound. */
  async listen(addresses: readonly string[]): Promise<void> {
    for (const [address, listener] of this.#listeners) {
      if (addresses.includes(address)) continue
      listener.close()
      this.#listeners.delete(address)
    }
    for (const address of addresses) {
      if (this.#listeners.has(address)) continue
      const { host, port } = splitHostPort(address, 53)
      const answering = { udp: (query: Buffer) => this.udp(query), tcp: (query: Buffer) => this.answer(query) }
      this.#listeners.set(address, await listen(host, port, answering, this.log))
    }
  }

  /** Answers one query within the client's payload size; synchronously if the answer is cached. Never throws or rejects. */
  udp(query: Buffer): Buffer | Promise<Buffer> {
    // Most queries repeat an earlier one byte for byte except the id, so they need no parsing.
    const exact = query.toString('latin1', 2)
    const hit = this.#exact.get(exact)
    if (hit) {
      if (hit.kept.until > this.now()) return fitting(shownTo(query, hit.end, hit.kept, this.now()), hit.limit)
      this.#exact.delete(exact)
    }
    const limit = limitOf(query)
    const answer = this.#answer(query, (kept, end) => {
      if (query.length > usualQuery || kept.answer.length > usualAnswer) return
      if (this.#exact.size >= mostExact) this.#exact.clear()
      this.#exact.set(exact, { kept, end, limit })
    })
    return answer instanceof Promise ? answer.then((late) => fitting(late, limit)) : fitting(answer, limit)
  }

  /** Answers one query in full. Never rejects. */
  async answer(query: Buffer): Promise<Buffer> {
    return this.#answer(query, () => {})
  }

  #answer(query: Buffer, found: (kept: Kept, end: number) => void): Buffer | Promise<Buffer> {
    let question: Question
    let extension: Extension | undefined
    try {
      question = readQuestion(query)
      if (((query[2] ?? 0) & 0x80) !== 0) return answerWith(query, responseCode.formatError)
      if ((((query[2] ?? 0) >> 3) & 15) !== 0) return answerWith(query, responseCode.notImplemented)
      extension = readExtension(query)
    } catch {
      return answerWith(query, responseCode.formatError)
    }
    if (extension && extension.version > 0) return answerBadVersion(query)
    const own = this.#own(query)
    if (own) return own
    // A client that uses EDNS or requests DNSSEC records gets a different answer.
    const key = `${question.flags} ${extension ? extension.flags & 0x8000 : ''} ${question.key}`
    const kept = this.#cache.get(key, this.now())
    if (!kept) return this.#forward(query, question, key)
    found(kept, question.end)
    return shownTo(query, question.end, kept, this.now())
  }

  async #forward(query: Buffer, { end }: Question, key: string): Promise<Buffer> {
    let pending = this.#underWay.get(key)
    if (!pending) {
      if (this.#underWay.size >= mostUnderWay) return answerWith(query, responseCode.serverFailure)
      pending = this.#learn(query, key).finally(() => this.#underWay.delete(key))
      this.#underWay.set(key, pending)
    }
    const answer = await pending
    return answer ? copyTo(query, end, answer) : answerWith(query, responseCode.serverFailure)
  }

  async #learn(query: Buffer, key: string): Promise<Buffer | undefined> {
    const answer = await this.#upstreams.ask(query)
    try {
      if (answer) this.#cache.put(key, answer, this.now())
      return answer
    } catch {
      return undefined // its records do not parse
    }
  }

  /** The answer for a member's name. Without an address of the queried type it has no records. */
  #own(query: Uint8Array): Buffer | undefined {
    if (this.#names.size === 0) return undefined
    const pending = readQueryName(query)
    const addresses = pending && pending.class === 1 ? this.#names.get(pending.name) : undefined
    if (!addresses) return undefined
    const length = pending?.type === 1 ? 4 : pending?.type === 28 ? 16 : 0
    return answerAddresses(
      query,
      addresses.filter((address) => address.length === length),
      ownLifetime,
    )
  }
}

const shownTo = (query: Buffer, end: number, kept: Kept, now: number): Buffer => copyTo(query, end, shownAt(kept, now))

/** A copy with the client's id and with its question in the original letter case, which some clients verify (0x20 encoding). */
function copyTo(query: Buffer, end: number, answer: Buffer): Buffer {
  const copy = Buffer.allocUnsafe(answer.length)
  copy.set(answer)
  query.copy(copy, 0, 0, 2)
  query.copy(copy, 12, 12, end)
  return copy
}

const fitting = (answer: Buffer, limit: number): Buffer => (answer.length <= limit ? answer : truncated(answer))

function limitOf(query: Uint8Array): number {
  try {
    return readExtension(query)?.payload ?? smallest
  } catch {
    return smallest
  }
}
