/** One client call: sends requests no faster than the server reads them, and yields replies and the final status. */
import { timerDelay } from '../../timing/timer.ts'
import { messageOf } from '../../wire/error-message.ts'
import type { Headers } from '../../wire/http2/hpack.ts'
import { decode, encode } from '../codec.ts'
import { FrameReader, frameHeader, sealFrame, statusOf, statusOfHttp } from '../frame.ts'
import type { Stream } from '../http2/stream.ts'
import type { MethodShape } from '../schema.ts'
import { RpcError } from '../status.ts'

/** Options of a call. */
export interface CallOptions {
  readonly metadata?: Readonly<Record<string, string | readonly string[]>>
  /** Milliseconds from now; 0 for none. Default: 30 seconds for unary and client-streaming calls, none for others. */
  readonly deadline?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** One call on its stream. */
export class Call {
  readonly stream: Stream
  readonly #shape: MethodShape
  readonly #frames = new FrameReader()
  readonly #pieces: Buffer[] = []
  #wake: (() => void) | undefined
  #failure?: RpcError
  #answered = false
  #ended = false
  #trailers?: Headers

  constructor(stream: Stream, shape: MethodShape, { deadline, signal }: CallOptions) {
    this.stream = stream
    this.#shape = shape
    const timer = deadline
      ? setTimeout(
          () => this.#stop(new RpcError('DeadlineExceeded', `call "${shape.path}": no answer within ${deadline} ms`)),
          timerDelay(deadline),
        )
      : undefined
    const abort = () => this.#stop(new RpcError('Canceled', `call "${shape.path}": canceled`))
    signal?.addEventListener('abort', abort)
    stream.whenClosed(() => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      this.#wake?.()
    })
    stream.read({
      headers: (headers) => this.#head(headers),
      data: (piece) => {
        this.#pieces.push(piece)
        this.#wake?.()
      },
      end: (trailers) => {
        this.#ended = true
        if (trailers) this.#trailers = trailers
        this.#wake?.()
      },
    })
  }

  /** Sends requests no faster than the server reads them. */
  async send(requests: AsyncIterable<object>): Promise<void> {
    const { stream } = this
    try {
      for await (const request of requests) {
        if (stream.closed) return
        if (!stream.write(sealFrame(encode(this.#shape.request, request, frameHeader))))
          await new Promise<void>((resolve) => stream.drained(resolve))
      }
      stream.end()
    } catch (error) {
      this.#stop(new RpcError('Canceled', `call "${this.#shape.path}": ${messageOf(error)}`, { cause: error }))
    }
  }

  /** The replies; then throws the status unless it is OK. */
  async *replies(): AsyncGenerator<object, void> {
    const { stream } = this
    try {
      for (;;) {
        const piece = this.#pieces.shift()
        if (piece) {
          for (const message of this.#frames.push(piece)) yield decode(this.#shape.reply, message)
          stream.release(piece.length)
        } else if (this.#ended || stream.closed) break
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
      }
      const failure = this.#failure ?? this.#status()
      if (failure) throw failure
      this.#frames.end()
    } finally {
      // Also when all replies have arrived and the request is still being sent.
      stream.reset()
    }
  }

  #head(headers: Headers): void {
    this.#answered = true
    const status = Number(headers[':status'])
    if (headers['grpc-status'] !== undefined) this.#trailers = headers
    else if (status !== 200) this.#stop(new RpcError(statusOfHttp(status), `server answered with HTTP status ${status}`))
  }

  #stop(failure: RpcError): void {
    this.#failure ??= failure
    this.stream.reset()
  }

  #status(): RpcError | undefined {
    if (this.#trailers) return statusOf(this.#trailers)
    const { failure } = this.stream
    const lost = failure?.message ?? 'connection closed without a response'
    if (failure?.code === 'ENHANCE_YOUR_CALM' && !this.#ended)
      return new RpcError('ResourceExhausted', `call "${this.#shape.path}": the server ended it in favour of other clients`, {
        cause: failure,
      })
    if (!this.#ended) return new RpcError('Unavailable', `call "${this.#shape.path}": ${lost}`, { cause: failure })
    return this.#answered ? statusOf({}) : new RpcError('Unavailable', `call "${this.#shape.path}": ${lost}`)
  }
}
