/**
 * Incoming requests: checked against the limit of their method before their bytes are accepted, timed until they are complete,
 * and charged to their client as long as the call lasts.
 */
import { timerDelay } from '../../timing/timer.ts'
import { decode } from '../codec.ts'
import { FrameReader } from '../frame.ts'
import { compact, type Stream } from '../http2/stream.ts'
import type { MessageType, MethodShape } from '../schema.ts'
import { RpcError } from '../status.ts'

/** Total fields of one request: enough for thousands of nodes, not for millions of empty messages. */
const maxFields = 10_000

/** Bytes charged for a decoded field: an empty message with its defaults takes slightly less. */
const fieldMemory = 128

const empty = Buffer.alloc(0)

/** Milliseconds until a request must be complete, and until a started message of a stream must continue. */
const requestTime = 30_000

/** Ends requests that are not complete in time. One timer for all, since most requests arrive at once. */
export class RequestClock {
  readonly #time: number
  /** The longest waiting first. */
  readonly #waiting = new Map<Stream, { since: number; expire: (reason: RpcError) => void }>()
  #sweep?: ReturnType<typeof setInterval> | undefined

  constructor(time = requestTime) {
    this.#time = time
  }

  /** Starts or extends the time limit of a request. */
  await(stream: Stream, expire: (reason: RpcError) => void): void {
    this.#waiting.delete(stream)
    this.#waiting.set(stream, { since: performance.now(), expire })
    this.#sweep ??= setInterval(() => this.#expire(), timerDelay(Math.min(1000, this.#time))).unref()
  }

  /** Stops waiting for a request. */
  complete(stream: Stream): void {
    this.#waiting.delete(stream)
  }

  #expire(): void {
    for (const [stream, { since, expire }] of this.#waiting) {
      if (performance.now() - since < this.#time) return
      this.#waiting.delete(stream)
      expire(new RpcError('DeadlineExceeded', `the request was incomplete after ${this.#time / 1000} s`))
    }
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }
}

/** Charges a client for its retained request. */
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
 * The only message of a call, up to `limit` bytes; charged to the client until the call ends. Stays pending when the caller
 * leaves; the clock must be notified then.
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
          // It may wait for END_STREAM, and parts of it for the end of the call: neither may retain the chunk it arrived in.
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
export function oneRequest(stream: Stream, clock: RequestClock, { request, requestLimit }: MethodShape): Promise<object> {
  return oneMessage(stream, clock, requestLimit).then((message) => {
    const { value, memory } = decoded(request, message)
    stream.charge(memory)
    return value
  })
}

/** A decoded request, and the memory of its fields beyond its bytes. */
function decoded(type: MessageType, message: Buffer): { value: object; memory: number } {
  const budget = { left: maxFields, most: maxFields }
  const value = decode(type, message, budget)
  return { value, memory: (maxFields - budget.left) * fieldMemory }
}

/** The requests of a client stream, each charged until the next is requested; `expire` is called when a message stalls. */
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
