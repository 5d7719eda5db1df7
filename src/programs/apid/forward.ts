/** One call to one backend: what comes is sent on, byte for byte, each side no faster than the other takes it. */
import { endWith, statusTrailers } from '../../rpc/frame.ts'
import type { Stream, StreamReader } from '../../rpc/http2/stream.ts'
import { RpcError, toRpcError } from '../../rpc/status.ts'
import type { Headers } from '../../wire/http2/hpack.ts'
import type { Way } from './upstream.ts'

/** Forwards a call; its end, good or bad, reaches the caller as the backend's would. */
export function forward(caller: Stream, headers: Headers, upstream: Way): void {
  const connection = upstream.connection()
  if (!(connection instanceof Promise)) {
    relay(caller, connection.request(headers))
    return
  }
  // Nothing is read from the caller meanwhile: its bytes wait within its window.
  connection.then(
    (session) => {
      if (!caller.closed) relay(caller, session.request(headers))
    },
    (error) => endWith(caller, toRpcError(error)),
  )
}

function relay(caller: Stream, backend: Stream): void {
  caller.whenClosed(() => backend.reset())
  caller.read(new FromCaller(caller, backend))
  const answer = new FromBackend(backend, caller)
  backend.read(answer)
  backend.whenClosed(() => answer.lost())
}

/** Writes what comes; what one side does not take, the other may not send again. */
class Pump {
  #owed = 0

  constructor(
    readonly from: Stream,
    readonly to: Stream,
  ) {}

  data(piece: Buffer): void {
    const room = this.to.write(piece)
    if (room && this.#owed === 0) {
      this.from.release(piece.length)
      return
    }
    this.#owed += piece.length
    if (this.#owed > piece.length) return
    this.to.drained(() => {
      const bytes = this.#owed
      this.#owed = 0
      this.from.release(bytes)
    })
  }
}

/** What the caller sends. */
class FromCaller extends Pump implements StreamReader {
  end(): void {
    this.to.end()
  }
}

/** What the backend answers. */
class FromBackend extends Pump implements StreamReader {
  #over = false

  headers(headers: Headers): void {
    this.#over = headers['grpc-status'] !== undefined
    this.to.respond(headers, this.#over)
  }

  end(trailers: Headers | undefined): void {
    if (this.#over) return
    this.#over = true
    this.to.end(undefined, trailers ?? statusTrailers(new RpcError('Unavailable', 'backend ended the call without a status')))
  }

  /** The backend's stream has ended. */
  lost(): void {
    if (this.#over) return
    const { failure } = this.from
    // Part of a message may be sent already; only a reset can follow it then.
    if (failure?.code === 'ENHANCE_YOUR_CALM') this.to.exhaust('too much of the answer waits to be read')
    else endWith(this.to, new RpcError('Unavailable', `backend connection: ${failure?.message ?? 'lost'}`))
  }
}
