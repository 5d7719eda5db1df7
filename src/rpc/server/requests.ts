/**
 * Requests as they arrive: measured by the limit that their method declares before their bytes are taken, charged to their
 * client while they are not whole, and timed.
 */
import { timerDelay } from '../../cosi/timer.ts'
import { decode } from '../codec.ts'
import { FrameReader } from '../frame.ts'
import type { Stream } from '../http2/stream.ts'
import type { MethodShape } from '../schema.ts'
import { RpcError } from '../status.ts'

/** Fields that one request may have in all: thousands of nodes fit, millions of empty messages do not. */
const maxFields = 10_000

/** Milliseconds in which a request must be whole, and within which a message of a stream that has begun must go on. */
const requestTime = 30_000

/** Ends requests that do not become whole in time. One timer for all, since most requests are whole at once. */
export class RequestClock {
  readonly #time: number
  /** The one that waits longest first. */
  readonly #waiting = new Map<Stream, { since: number; expire: (reason: RpcError) => void }>()
  #sweep?: ReturnType<typeof setInterval>

  constructor(time = requestTime) {
    this.#time = time
  }

  /** The rest of a request must come within the time from now. */
  await(stream: Stream, expire: (reason: RpcError) => void): void {
    this.#waiting.delete(stream)
    this.#waiting.set(stream, { since: performance.now(), expire })
    this.#sweep ??= setInterval(() => this.#expire(), timerDelay(Math.min(1000, this.#time))).unref()
  }

  /** Nothing is waited for any more. */
  complete(stream: Stream): void {
    this.#waiting.delete(stream)
  }

  #expire(): void {
    for (const [stream, { since, expire }] of this.#waiting) {
      if (performance.now() - since < this.#time) return
      this.#waiting.delete(stream)
      expire(new RpcError('DeadlineExceeded', `the request was not whole within ${this.#time / 1000} s`))
    }
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }
}

/** Charges a client for what is kept of its request. */
class Kept {
  #bytes = 0

  constructor(readonly stream: Stream) {}

  set bytes(bytes: number) {
    if (bytes === this.#bytes) return
    this.stream.charge(bytes - this.#bytes)
    this.#bytes = bytes
  }
}

/** The only message of a call, of so many bytes at most. Stays open when the caller leaves; the clock must be told then. */
export function oneMessage(stream: Stream, clock: RequestClock, limit: number): Promise<Buffer> {
  const frames = new FrameReader(limit)
  const kept = new Kept(stream)
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  let message: Buffer | undefined
  clock.await(stream, reject)
  stream.read({
    data(piece) {
      try {
        for (const next of frames.push(piece)) {
          if (message) throw new RpcError('Internal', 'more than one request for a method that takes one')
          message = next
        }
        kept.bytes = frames.held + (message?.length ?? 0)
        stream.release(piece.length)
      } catch (error) {
        reject(error)
      }
    },
    end() {
      clock.complete(stream)
      kept.bytes = 0
      if (message) resolve(message)
      else reject(new RpcError('Internal', 'the request is missing'))
    },
  })
  return promise
}

/** The request of a call that has just one. */
export async function oneRequest(stream: Stream, clock: RequestClock, { request, requestLimit }: MethodShape): Promise<object> {
  return decode(request, await oneMessage(stream, clock, requestLimit), maxFields)
}

/** The requests of a call that has many, each measured; `expire` is called when a message stops in its middle. */
export async function* manyRequests(
  stream: Stream,
  clock: RequestClock,
  { request, requestLimit }: MethodShape,
  expire: (reason: RpcError) => void,
): AsyncGenerator<object, void> {
  const frames = new FrameReader(requestLimit)
  const kept = new Kept(stream)
  for await (const piece of stream.chunks()) {
    clock.complete(stream)
    for (const message of frames.push(piece)) yield decode(request, message, maxFields)
    kept.bytes = frames.held
    if (frames.held > 0) clock.await(stream, expire)
  }
  clock.complete(stream)
  frames.end()
}
