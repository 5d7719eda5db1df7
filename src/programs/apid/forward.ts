/** One call to one backend: what comes is sent on, byte for byte, each side no faster than the other takes it. */
import { endWith, statusTrailers } from '../../rpc/frame.ts'
import type { Stream } from '../../rpc/http2/stream.ts'
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
  let over = false
  caller.whenClosed(() => backend.reset())
  caller.read({
    data: pump(caller, backend),
    end: () => backend.end(),
  })
  backend.read({
    headers(headers) {
      over = headers['grpc-status'] !== undefined
      caller.respond(headers, over)
    },
    data: pump(backend, caller),
    end(trailers) {
      if (over) return
      over = true
      caller.end(undefined, trailers ?? statusTrailers(new RpcError('Unavailable', 'backend ended the call without a status')))
    },
  })
  backend.whenClosed(() => {
    if (over) return
    // Part of a message may be sent already; only a reset can follow it then.
    if (backend.failure?.code === 'ENHANCE_YOUR_CALM') caller.exhaust('too much of the answer waits to be read')
    else endWith(caller, new RpcError('Unavailable', `backend connection: ${backend.failure?.message ?? 'lost'}`))
  })
}

/** Writes what comes; what one side does not take, the other may not send again. */
function pump(from: Stream, to: Stream): (piece: Buffer) => void {
  let owed = 0
  return (piece) => {
    const room = to.write(piece)
    if (room && owed === 0) {
      from.release(piece.length)
      return
    }
    owed += piece.length
    if (owed > piece.length) return
    to.drained(() => {
      const bytes = owed
      owed = 0
      from.release(bytes)
    })
  }
}
