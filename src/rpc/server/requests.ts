/**
 * Requests as they arrive: measured by the limit that their method declares before their bytes are taken, timed until they are
 * whole, and charged to their client for as long as their call lasts.
 */
import { timerDelay } from '../../cosi/timer.ts'
import { decode } from '../codec.ts'
import { FrameReader } from '../frame.ts'
import { compact, type Stream } from '../http2/stream.ts'
import type { MessageType, MethodShape } from '../schema.ts'
import { RpcError } from '../status.ts'

/** Fields that one request may have in all: thousands of nodes fit, millions of empty messages do not. */
const maxFields = 10_000

/** Bytes of memory that a decoded field is charged as: an empty message with its defaults takes somewhat less. */
const fieldMemory = 128

const empty = Buffer.alloc(0)

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

/**
 * The only message of a call, of so many bytes at most; the client is charged for it until the call ends. Stays open when the
 * caller leaves; the clock must be told then.
 */
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
          // It may wait for END_STREAM, and parts of it for the end of the call: neither may keep the chunk that it came in.
          message = next.length > 0 ? compact(next) : empty
        }
        kept.bytes = frames.held + (message?.length ?? 0)
        stream.release(piece.length)
      } catch (error) {
        reject(error)
      }
    },
    end() {
      clock.complete(stream)
      if (message) resolve(message)
      else reject(new RpcError('Internal', 'the request is missing'))
    },
  })
  return promise
}

/** The request of a call that has just one. */
export async function oneRequest(stream: Stream, clock: RequestClock, { request, requestLimit }: MethodShape): Promise<object> {
  const { value, memory } = decoded(request, await oneMessage(stream, clock, requestLimit))
  stream.charge(memory)
  return value
}

/** A decoded request, and the memory that its fields take beyond its bytes. */
function decoded(type: MessageType, message: Buffer): { value: object; memory: number } {
  const budget = { left: maxFields, most: maxFields }
  const value = decode(type, message, budget)
  return { value, memory: (maxFields - budget.left) * fieldMemory }
}

/** The requests of a call that has many, each measured, and charged until the next is asked for; `expire` is called when a message stops in its middle. */
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
    for (const message of frames.push(piece)) {
      const { value, memory } = decoded(request, message)
      kept.bytes = message.length + memory
      yield value
    }
    kept.bytes = frames.held
    if (frames.held > 0) clock.await(stream, expire)
  }
  clock.complete(stream)
  frames.end()
}
