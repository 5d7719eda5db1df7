/** One call of a client: requests sent no faster than the server takes them, replies, and the status it ended with. */
import http2 from 'node:http2'
import { decode, encode } from '../codec.ts'
import { drained } from '../drained.ts'
import { FrameReader, frameHeader, sealFrame, statusOf, statusOfHttp } from '../frame.ts'
import type { MethodShape } from '../schema.ts'
import { RpcError } from '../status.ts'

/** What comes with a call. */
export interface CallOptions {
  readonly metadata?: Readonly<Record<string, string | readonly string[]>>
  /** Milliseconds from now; 0 for none. Unary and client-streaming calls have 30 seconds when not told; others none. */
  readonly deadline?: number
  readonly signal?: AbortSignal
}

/** One call on its stream. */
export class Call {
  readonly stream: http2.ClientHttp2Stream
  readonly #shape: MethodShape
  #failure?: RpcError
  #answered = false
  #trailers?: Record<string, unknown>

  constructor(stream: http2.ClientHttp2Stream, shape: MethodShape, { deadline, signal }: CallOptions) {
    this.stream = stream
    this.#shape = shape
    const stop = (failure: RpcError) => {
      this.#failure ??= failure
      stream.close(http2.constants.NGHTTP2_CANCEL)
    }
    const timer = deadline
      ? setTimeout(() => stop(new RpcError('DeadlineExceeded', `call "${shape.path}": no answer within ${deadline} ms`)), deadline)
      : undefined
    const abort = () => stop(new RpcError('Canceled', `call "${shape.path}": canceled`))
    signal?.addEventListener('abort', abort)
    stream.on('response', (headers) => {
      this.#answered = true
      const status = Number(headers[':status'])
      if (status !== 200) stop(new RpcError(statusOfHttp(status), `server answered with HTTP status ${status}`))
      else if (headers['grpc-status'] !== undefined) this.#trailers = headers
    })
    stream.on('trailers', (trailers) => {
      this.#trailers = trailers
    })
    stream.on('error', (error: Error) => {
      // One that was never answered is told of below: the reason is mostly a certificate that was refused.
      if (this.#answered) this.#failure ??= new RpcError('Unavailable', `call "${shape.path}": ${error.message}`)
    })
    stream.on('close', () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    })
  }

  /** Sends requests no faster than the server takes them. */
  async send(requests: AsyncIterable<object>): Promise<void> {
    const { stream } = this
    try {
      for await (const request of requests) {
        if (stream.destroyed || stream.closed) return
        if (stream.write(sealFrame(encode(this.#shape.request, request, frameHeader)))) continue
        await drained(stream)
      }
      stream.end()
    } catch (error) {
      this.#failure ??= new RpcError('Canceled', `call "${this.#shape.path}": ${(error as Error).message}`, { cause: error })
      stream.close(http2.constants.NGHTTP2_CANCEL)
    }
  }

  /** The replies, then the status as a throw unless it is OK. */
  async *replies(): AsyncGenerator<object, void> {
    const { stream } = this
    const frames = new FrameReader()
    let whole = false
    try {
      for await (const chunk of stream) for (const message of frames.push(chunk as Buffer)) yield decode(this.#shape.reply, message)
      whole = true
    } catch (error) {
      // The loop throws for a stream that was cut off; why is known better by its other events.
      this.#failure ??= error instanceof RpcError ? error : this.#status()
      throw this.#failure ?? new RpcError('Unavailable', `call "${this.#shape.path}": ${(error as Error).message}`, { cause: error })
    } finally {
      // Also when it has all its answers and would still send.
      if (!whole || !stream.writableFinished) stream.close(http2.constants.NGHTTP2_CANCEL)
    }
    const failure = this.#failure ?? this.#status()
    if (failure) throw failure
    frames.end()
  }

  #status(): RpcError | undefined {
    if (this.#trailers) return statusOf(this.#trailers)
    if (this.#answered) return statusOf({})
    return new RpcError(
      'Unavailable',
      `call "${this.#shape.path}": connection ended without an answer; the server may have refused our certificate`,
    )
  }
}
