/** The streams of one connection: open ones, queued ones, and recently ended ones. */
import { TokenBucket } from '../../timing/token-bucket.ts'
import { ConnectionError, type ErrorName } from '../../wire/http2/error.ts'
import type { OutgoingHeaders } from '../../wire/http2/hpack.ts'
import { maxInt31 } from '../../wire/http2/settings.ts'
import type { Credit } from './credit.ts'
import { remembered, resetBurst, resetsPerSecond } from './limits.ts'
import type { Sender } from './sender.ts'
import { type Stream, StreamError } from './stream.ts'

/** Manages the streams of a connection. */
export class Streams {
  readonly #server: boolean
  readonly #sender: Sender
  readonly #credit: Credit
  readonly #removed: () => void
  readonly #open = new Map<number, Stream>()
  /** Requests beyond the server's limit of concurrent streams. */
  readonly #waiting: { stream: Stream; headers: OutgoingHeaders }[] = []
  /** Ids of recently ended streams of a server, negative when this side reset them; the oldest is overwritten first. */
  readonly #ended: number[] = []
  #oldest = 0
  #nextId = 1
  /** Resets that the peer may still cause. */
  readonly #resets = new TokenBucket({ rate: resetsPerSecond, burst: resetBurst })
  /** The highest stream id that the peer opened. */
  last = 0

  /** `removed` is called whenever a stream is removed. */
  constructor(server: boolean, sender: Sender, credit: Credit, removed: () => void) {
    this.#server = server
    this.#sender = sender
    this.#credit = credit
    this.#removed = removed
  }

  /** The number of open and queued streams. */
  get size(): number {
    return this.#open.size + this.#waiting.length
  }

  /** The number of open streams. */
  get active(): number {
    return this.#open.size
  }

  /** Whether all stream ids are used. */
  get exhausted(): boolean {
    return this.#nextId > maxInt31 - 2
  }

  get(id: number): Stream | undefined {
    return this.#open.get(id)
  }

  /** A copy of the open streams, so that they may end during iteration. */
  all(): Stream[] {
    return [...this.#open.values()]
  }

  /** Whether the stream is idle: it was never opened. */
  isIdle(id: number): boolean {
    if (id % 2 === 0) return true
    return this.#server ? id > this.last : id >= this.#nextId
  }

  /** Whether this side reset an ended stream; undefined when that is no longer known. */
  brokenByUs(id: number): boolean | undefined {
    if (this.#ended.includes(-id)) return true
    return this.#ended.includes(id) ? false : undefined
  }

  /** Opens a local stream, now or when the server allows one more. */
  request(stream: Stream, headers: OutgoingHeaders): void {
    if (this.#waiting.length > 0 || this.#open.size >= this.#sender.peer.maxConcurrentStreams) this.#waiting.push({ stream, headers })
    else this.#start(stream, headers)
  }

  /** Opens queued streams, as far as the server allows. */
  startWaiting(): void {
    while (this.#open.size < this.#sender.peer.maxConcurrentStreams) {
      const waiting = this.#waiting.shift()
      if (!waiting) return
      this.#start(waiting.stream, waiting.headers)
    }
  }

  /** Registers a stream that the peer opened. */
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

  /** END_STREAM was sent. */
  sent(stream: Stream): void {
    if (stream.remoteEnded) this.complete(stream)
    else if (this.#server) {
      // A caller that still sends is notified that it may stop.
      this.#sender.reset(stream.id, 'NO_ERROR')
      this.remove(stream, true)
      stream.finish()
    }
  }

  /** Both sides have sent END_STREAM. */
  complete(stream: Stream): void {
    if (stream.closed) return
    this.remove(stream, false)
    stream.finish()
  }

  /** Resets a stream because of an error of the peer. Throws ConnectionError when that happened too often. */
  abortStream(stream: Stream, code: ErrorName, message: string): void {
    this.countReset()
    this.#sender.reset(stream.id, code)
    this.remove(stream, true)
    stream.finish(new StreamError(code, message, true))
  }

  /** Refuses a stream that the peer opens. Throws ConnectionError when that happened too often. */
  refuse(id: number, code: ErrorName): void {
    this.countReset()
    this.#sender.reset(id, code)
    this.#remember(id, true)
  }

  /** Refuses a stream without processing it: REFUSED_STREAM. */
  ignore(id: number): void {
    this.#remember(id, true)
  }

  /** Resets a stream for a local reason. */
  leave(stream: Stream, code: ErrorName): void {
    if (stream.id > 0) {
      this.#sender.reset(stream.id, code)
      this.remove(stream, true)
      return
    }
    const at = this.#waiting.findIndex((waiting) => waiting.stream === stream)
    if (at >= 0) this.#waiting.splice(at, 1)
  }

  /** Removes a stream. */
  remove(stream: Stream, broken: boolean): void {
    if (!this.#open.delete(stream.id)) return
    this.#sender.leave(stream)
    this.#credit.forget(stream)
    if (this.#server) this.#remember(stream.id, broken)
    else if (this.#waiting.length > 0) this.startWaiting()
    this.#removed()
  }

  /** Ends the streams after an id, which the peer has not processed. */
  endAfter(last: number, message: string): void {
    const unprocessed = () => new StreamError('REFUSED_STREAM', message, true, true)
    for (const { stream } of this.#waiting.splice(0)) stream.finish(unprocessed())
    for (const stream of this.all()) {
      if (stream.id <= last) continue
      this.remove(stream, false)
      stream.finish(unprocessed())
    }
  }

  /** Ends all streams when the connection is closed. */
  endAll(message: string): void {
    this.endAfter(maxInt31, message)
    for (const stream of this.all()) {
      this.remove(stream, false)
      stream.finish(new StreamError('INTERNAL_ERROR', message, true))
    }
  }

  /** A client that opens streams only to have them reset causes useless work. */
  countReset(): void {
    if (this.#server && !this.#resets.take()) throw new ConnectionError('ENHANCE_YOUR_CALM', 'too many streams were reset')
  }

  #remember(id: number, broken: boolean): void {
    this.#ended[this.#oldest] = broken ? -id : id
    this.#oldest = (this.#oldest + 1) % remembered
  }
}
