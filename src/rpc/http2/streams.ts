/** The streams of one connection: which are open, which wait for their turn, and which ended lately. */
import { ConnectionError, type ErrorName } from '../../wire/http2/error.ts'
import type { OutgoingHeaders } from '../../wire/http2/hpack.ts'
import { maxInt31 } from '../../wire/http2/settings.ts'
import type { Credit } from './credit.ts'
import { remembered, resetBurst, resetsPerSecond } from './limits.ts'
import type { Sender } from './sender.ts'
import { type Stream, StreamError } from './stream.ts'

/** Keeps the streams of a connection. */
export class Streams {
  readonly #server: boolean
  readonly #sender: Sender
  readonly #credit: Credit
  readonly #removed: () => void
  readonly #open = new Map<number, Stream>()
  /** Requests beyond what the server takes at a time. */
  readonly #waiting: { stream: Stream; headers: OutgoingHeaders }[] = []
  /** Streams that ended lately, of a server: whether it was we who broke them off. */
  readonly #ended = new Map<number, boolean>()
  #nextId = 1
  #resets = 0
  #resetsSince = performance.now()
  /** The latest stream that the other side opened. */
  last = 0

  /** `removed` is told whenever there is one less. */
  constructor(server: boolean, sender: Sender, credit: Credit, removed: () => void) {
    this.#server = server
    this.#sender = sender
    this.#credit = credit
    this.#removed = removed
  }

  /** How many are open or wait. */
  get size(): number {
    return this.#open.size + this.#waiting.length
  }

  /** How many are open. */
  get active(): number {
    return this.#open.size
  }

  /** Whether all numbers of streams are used. */
  get exhausted(): boolean {
    return this.#nextId > maxInt31 - 2
  }

  get(id: number): Stream | undefined {
    return this.#open.get(id)
  }

  /** Those that are open now, and may be ended while they are walked. */
  all(): Stream[] {
    return [...this.#open.values()]
  }

  /** Whether there never was such a stream. */
  isIdle(id: number): boolean {
    if (id % 2 === 0) return true
    return this.#server ? id > this.last : id >= this.#nextId
  }

  /** Whether it was we who broke off a stream that has ended; undefined when that is not known any more. */
  brokenByUs(id: number): boolean | undefined {
    return this.#ended.get(id)
  }

  /** Opens a stream of ours, now or when the server takes one more. */
  request(stream: Stream, headers: OutgoingHeaders): void {
    if (this.#waiting.length > 0 || this.#open.size >= this.#sender.peer.maxConcurrentStreams) this.#waiting.push({ stream, headers })
    else this.#start(stream, headers)
  }

  /** Opens those that waited, as far as the server takes them. */
  startWaiting(): void {
    while (this.#waiting.length > 0 && this.#open.size < this.#sender.peer.maxConcurrentStreams) {
      const { stream, headers } = this.#waiting.shift()!
      this.#start(stream, headers)
    }
  }

  /** Takes in a stream that the other side opened. */
  accept(id: number, stream: Stream): void {
    stream.id = id
    this.#open.set(id, stream)
  }

  #start(stream: Stream, headers: OutgoingHeaders): void {
    stream.id = this.#nextId
    this.#nextId += 2
    this.#open.set(stream.id, stream)
    const whole = stream.ending && stream.pendingBytes === 0 && !stream.trailers
    this.#sender.headers(stream, headers, whole)
    if (!whole) this.#sender.begin(stream)
  }

  /** Our end of a stream was sent. */
  sent(stream: Stream): void {
    if (stream.remoteEnded) this.complete(stream)
    else if (this.#server) {
      // A caller that still sends is told that it may stop.
      this.#sender.reset(stream.id, 'NO_ERROR')
      this.remove(stream, true)
      stream.finish()
    }
  }

  /** Both ends are said. */
  complete(stream: Stream): void {
    if (stream.closed) return
    this.remove(stream, false)
    stream.finish()
  }

  /** Ends a stream for what the other side did to it. Throws ConnectionError when that was too often. */
  breakOff(stream: Stream, code: ErrorName, message: string): void {
    this.countReset()
    this.#sender.reset(stream.id, code)
    this.remove(stream, true)
    stream.finish(new StreamError(code, message, true))
  }

  /** Does not open a stream that the other side wants. Throws ConnectionError when that was too often. */
  refuse(id: number, code: ErrorName): void {
    this.countReset()
    this.#sender.reset(id, code)
    this.#remember(id, true)
  }

  /** A stream that the other side wants is not looked at, and it knows. */
  ignore(id: number): void {
    this.#remember(id, true)
  }

  /** Breaks off a stream of our own accord. */
  leave(stream: Stream, code: ErrorName): void {
    if (stream.id > 0) {
      this.#sender.reset(stream.id, code)
      this.remove(stream, true)
      return
    }
    const at = this.#waiting.findIndex((waiting) => waiting.stream === stream)
    if (at >= 0) this.#waiting.splice(at, 1)
  }

  /** Takes a stream out. */
  remove(stream: Stream, broken: boolean): void {
    if (!this.#open.delete(stream.id)) return
    this.#sender.leave(stream)
    this.#credit.forget(stream)
    if (this.#server) this.#remember(stream.id, broken)
    else if (this.#waiting.length > 0) this.startWaiting()
    this.#removed()
  }

  /** Ends those after a number, which the other side never looked at. */
  endAfter(last: number, message: string): void {
    const unprocessed = () => new StreamError('REFUSED_STREAM', message, true, true)
    for (const { stream } of this.#waiting.splice(0)) stream.finish(unprocessed())
    for (const stream of this.all()) {
      if (stream.id <= last) continue
      this.remove(stream, false)
      stream.finish(unprocessed())
    }
  }

  /** Ends all: the connection is gone. */
  endAll(message: string): void {
    this.endAfter(maxInt31, message)
    for (const stream of this.all()) {
      this.remove(stream, false)
      stream.finish(new StreamError('INTERNAL_ERROR', message, true))
    }
  }

  /** A client that opens streams only to have them broken off makes work for nothing. */
  countReset(): void {
    if (!this.#server || ++this.#resets <= resetBurst) return
    const now = performance.now()
    this.#resets = Math.max(0, resetBurst - Math.floor(((now - this.#resetsSince) / 1000) * resetsPerSecond))
    this.#resetsSince = now
    if (this.#resets >= resetBurst) throw new ConnectionError('ENHANCE_YOUR_CALM', 'too many streams were broken off')
  }

  #remember(id: number, broken: boolean): void {
    this.#ended.set(id, broken)
    if (this.#ended.size <= remembered) return
    for (const oldest of this.#ended.keys()) {
      this.#ended.delete(oldest)
      break
    }
  }
}
