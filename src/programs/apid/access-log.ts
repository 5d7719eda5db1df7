/**
 * One line for each call when it has ended, as the field's apid writes it, with who called and for which node behind it.
 * Lines are bounded, per client and in total; excess calls are counted and logged as a summary.
 */
import { statusOf } from '../../rpc/frame.ts'
import type { Stream } from '../../rpc/http2/stream.ts'
import { TokenBucket } from '../../timing/token-bucket.ts'
import { formatDuration } from '../../wire/duration.ts'
import type { Headers } from '../../wire/http2/hpack.ts'
import type { Client } from './roles.ts'

/** Lines per second on average and in a burst, of one client and of all; number of call kinds in a summary; lengths. */
export const accessLimits = { rate: 20, burst: 200, allRate: 100, allBurst: 1000, sums: 64, value: 256, line: 2048 } as const

/** Milliseconds that lines wait to be written together, and that what is beyond the bounds is summed up. */
const flushInterval = 100
const sumInterval = 10_000

/** Headers that do not distinguish callers, or are confidential. */
const hidden = new Set(['te', 'grpc-timeout', 'grpc-encoding', 'grpc-accept-encoding', 'proxyfrom', 'talos-role'])

const ofAll = { rate: accessLimits.allRate, burst: accessLimits.allBurst }

/** The access log of one gateway. */
export class AccessLog {
  readonly #write: (text: string) => void
  readonly #all = new TokenBucket(ofAll)
  readonly #clients = new Map<string, TokenBucket>()
  readonly #sums = new Map<string, number>()
  #lines: string[] = []
  #timer: ReturnType<typeof setTimeout> | undefined
  #sumTimer: ReturnType<typeof setTimeout> | undefined

  constructor(write: (text: string) => void) {
    this.#write = write
  }

  /** Notes a call when it has ended. */
  watch(stream: Stream, headers: Headers, client: Client): void {
    // Nothing but its headers has been charged to a call that begins, and those of ordinary ones are not.
    this.#note(stream, stream.charged > 0 ? clipped(headers) : headers, client)
  }

  #note(stream: Stream, headers: Headers, client: Client): void {
    const began = performance.now()
    const key = stream.share?.key ?? ''
    stream.whenClosed(() => this.#ended(stream, headers, client, key, began))
  }

  /** Writes what waits. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const lines = this.#lines
    this.#lines = []
    if (lines.length > 0) this.#write(lines.join('\n'))
  }

  /** Writes what waits, and the sums so far. */
  close(): void {
    this.#logSummaries()
    this.flush()
  }

  #ended(stream: Stream, headers: Headers, client: Client, key: string, began: number): void {
    const now = performance.now()
    const { code, message } = outcome(stream)
    const method = clean(headers[':path'])
    if (this.#allows(key, now)) {
      const duration = formatDuration(Math.round((now - began) * 1e3) * 1e3)
      this.#add(`${code} [${method}] ${duration} stream ${message} (${metadata(headers)}) {${whoAndWhere(headers, client)}}`)
      return
    }
    const known = `${code} [${method}]`
    const sum = this.#sums.has(known) || this.#sums.size < accessLimits.sums ? known : 'of other methods'
    this.#sums.set(sum, (this.#sums.get(sum) ?? 0) + 1)
    this.#sumTimer ??= later(() => this.#logSummaries(), sumInterval)
  }

  #allows(key: string, now: number): boolean {
    let own = this.#clients.get(key)
    if (!own) {
      if (this.#clients.size >= 1024) for (const [name, each] of this.#clients) if (each.full(now)) this.#clients.delete(name)
      if (this.#clients.size >= 1024) return false
      own = new TokenBucket(accessLimits, now)
      this.#clients.set(key, own)
    }
    return own.take(now) && this.#all.take(now)
  }

  #logSummaries(): void {
    clearTimeout(this.#sumTimer)
    this.#sumTimer = undefined
    for (const [what, count] of this.#sums) this.#add(`${count} more calls without a line each: ${what}`)
    this.#sums.clear()
  }

  #add(line: string): void {
    this.#lines.push(`${stamp(new Date())} access: ${line.slice(0, accessLimits.line)}`)
    this.#timer ??= later(() => this.flush(), flushInterval)
  }
}

function later(then: () => void, milliseconds: number): ReturnType<typeof setTimeout> {
  const timer = setTimeout(then, milliseconds)
  timer.unref()
  return timer
}

function outcome({ trailers, failure }: Stream): { code: string; message: string } {
  if (trailers?.['grpc-status'] !== undefined) {
    const error = statusOf(trailers)
    return error ? { code: error.status, message: clean(error.message) } : { code: 'OK', message: 'Success' }
  }
  if (failure?.code === 'ENHANCE_YOUR_CALM') return { code: 'ResourceExhausted', message: clean(failure.message) }
  return { code: failure ? 'Canceled' : 'Unknown', message: clean(failure?.message ?? 'ended without a status') }
}

/** What a line shows beside the metadata, or takes from it. */
const used = new Set([':path', 'node', 'nodes', 'talos-role', 'ichor-caller-name', 'ichor-caller-address'])

/** As much of large headers as a line may show; they are kept until the call ends. */
function clipped(headers: Headers): Headers {
  const kept: Headers = {}
  let room: number = accessLimits.line
  for (const name of Object.keys(headers).sort()) {
    if (!used.has(name) && (room <= 0 || !isShown(name))) continue
    const value = headers[name] ?? ''
    const text = typeof value === 'string' ? value : value.join(',')
    kept[name] = detached(text.slice(0, accessLimits.value))
    if (isShown(name)) room -= name.length + kept[name].length
  }
  return kept
}

/** A part of a text keeps the whole of it, unless it is copied. Headers are bytes. */
function detached(part: string): string {
  return Buffer.from(part, 'latin1').toString('latin1')
}

function isShown(name: string): boolean {
  return (!name.startsWith(':') || name === ':authority') && !hidden.has(name) && !name.startsWith('ichor-caller-')
}

function metadata(headers: Headers): string {
  return Object.keys(headers)
    .filter(isShown)
    .sort()
    .map((name) => `${clean(name)}=${name === 'token' ? '<hidden>' : clean(headers[name])}`)
    .join(';')
}

function whoAndWhere(headers: Headers, { name, roles, impersonator, address }: Client): string {
  const caller = impersonator ? (headers['ichor-caller-name'] ?? name) : name
  const fields = {
    caller,
    node: headers.nodes ?? headers.node,
    peer: impersonator ? (headers['ichor-caller-address'] ?? address) : address,
    roles: impersonator ? headers['talos-role'] : roles.length > 0 ? [...roles] : undefined,
    via: impersonator ? address : undefined,
  }
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${clean(value)}`)
    .join(';')
}

/** A value in one line of bounded length; data from callers must not look like log lines. */
function clean(value: string | readonly string[] | undefined): string {
  const text = typeof value === 'string' ? value : (value ?? []).join(',')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  return text.slice(0, accessLimits.value).replace(/[\x00-\x1f\x7f-\x9f]/g, '?')
}

function stamp(time: Date): string {
  return `${time.toISOString().slice(0, 23).replaceAll('-', '/').replace('T', ' ')}000`
}
