/** One call to one backend: what comes is sent on, byte for byte, each side no faster than the other takes it. */
import http2, { type ClientHttp2Stream, type IncomingHttpHeaders, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { statusTrailers } from '../../rpc/frame.ts'
import { RpcError, toRpcError } from '../../rpc/status.ts'
import { stopSending } from '../../rpc/stop-sending.ts'
import type { Upstream } from './upstream.ts'

/** Forwards a call; its end, good or bad, reaches the caller as the backend's would. */
export function forward(caller: ServerHttp2Stream, headers: OutgoingHttpHeaders, upstream: Upstream): void {
  const connection = upstream.connection()
  if (!(connection instanceof Promise)) {
    relay(caller, connection.request(headers))
    return
  }
  // Nothing is read from the caller meanwhile: its bytes wait within its window.
  connection.then(
    (session) => {
      if (!caller.destroyed) relay(caller, session.request(headers))
    },
    (error) => refuse(caller, toRpcError(error)),
  )
}

/** Ends a call that got no answer. */
export function refuse(caller: ServerHttp2Stream, error: RpcError): void {
  if (caller.destroyed || caller.closed) return
  stopSending(caller)
  const trailers = statusTrailers(error)
  if (!caller.headersSent) {
    caller.respond({ ':status': 200, 'content-type': 'application/grpc', ...trailers }, { endStream: true })
    return
  }
  caller.once('wantTrailers', () => caller.sendTrailers(trailers))
  caller.end()
}

function relay(caller: ServerHttp2Stream, backend: ClientHttp2Stream): void {
  let trailers: OutgoingHttpHeaders | undefined
  let failure: RpcError | undefined
  pump(caller, backend)
  caller.on('close', () => {
    if (!backend.closed) backend.close(http2.constants.NGHTTP2_CANCEL)
  })
  backend.on('response', (headers) => {
    if (caller.destroyed) return
    if (headers['grpc-status'] !== undefined) {
      trailers = {}
      caller.respond(copied(headers), { endStream: true })
    } else caller.respond(copied(headers), { waitForTrailers: true })
  })
  backend.on('trailers', (received) => {
    trailers = copied(received)
  })
  caller.on('wantTrailers', () => {
    caller.sendTrailers(trailers ?? statusTrailers(failure ?? new RpcError('Unavailable', 'backend ended the call without a status')))
  })
  pump(backend, caller)
  backend.on('error', (error: Error) => {
    failure ??= new RpcError('Unavailable', `backend connection: ${error.message}`)
  })
  backend.on('close', () => {
    // A backend's stream that was cut off never says "end".
    if (trailers || caller.destroyed) return
    failure ??= new RpcError('Unavailable', 'backend connection was lost')
    if (caller.headersSent) caller.end()
    else refuse(caller, failure)
  })
}

function pump(from: ClientHttp2Stream | ServerHttp2Stream, to: ClientHttp2Stream | ServerHttp2Stream): void {
  const resume = () => from.resume()
  from.on('data', (chunk: Buffer) => {
    if (to.destroyed || to.writableEnded || to.write(chunk)) return
    from.pause()
    to.once('drain', resume)
  })
  from.on('end', () => {
    if (!to.destroyed && !to.writableEnded) to.end()
  })
}

function copied(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const out: OutgoingHttpHeaders = {}
  for (const name in headers) out[name] = headers[name]
  return out
}
