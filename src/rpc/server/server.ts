/**
 * Serves methods over HTTP/2: on a unix socket with its owner and mode, or over TLS. What happens to a call is told in
 * call.ts.
 */
import { chmodSync, chownSync, mkdirSync, rmSync } from 'node:fs'
import http2 from 'node:http2'
import { dirname } from 'node:path'
import type { SecureContextOptions } from 'node:tls'
import { RpcError } from '../status.ts'
import { answer, finish, route, type ServerOptions } from './call.ts'

/** A server that listens. */
export interface Server {
  /** The TCP port that was given, or 0 for a unix socket. */
  readonly port: number
  /** Uses other certificates for connections made from now on; for a TLS server only. */
  renew(tls: SecureContextOptions): void
  /** Takes no more calls, lets running ones go on for `grace` milliseconds, then ends them. */
  close(grace?: number): Promise<void>
}

/** Where a unix socket lies and who may open it. */
export interface UnixAddress {
  readonly path: string
  readonly mode?: number
  readonly uid?: number
  readonly gid?: number
}

// The window stays at its usual size, see client/dial.ts.
const settings: http2.Settings = { maxConcurrentStreams: 10_000 }

/** Serves on a unix socket; the directory is made, a socket left there before is replaced. */
export function serveUnix(address: UnixAddress, options: ServerOptions): Promise<Server> {
  mkdirSync(dirname(address.path), { recursive: true, mode: 0o755 })
  rmSync(address.path, { force: true })
  return listen(http2.createServer({ settings }), options, (server, listening) =>
    server.listen(address.path, () => {
      chmodSync(address.path, address.mode ?? 0o600)
      if (address.uid !== undefined) chownSync(address.path, address.uid, address.gid ?? address.uid)
      listening()
    }),
  )
}

/** Serves over TLS on all addresses, or one. */
export function serveTls(
  address: { port: number; host?: string },
  tls: SecureContextOptions & { requestCert?: boolean; rejectUnauthorized?: boolean },
  options: ServerOptions,
): Promise<Server> {
  const server = http2.createSecureServer({ settings, minVersion: 'TLSv1.3', ...tls })
  return listen(server, options, (_, listening) => server.listen(address.port, address.host ?? '::', listening))
}

/** Serves without encryption on a TCP port: for loopback and tests. */
export function servePlain(address: { port: number; host: string }, options: ServerOptions): Promise<Server> {
  return listen(http2.createServer({ settings }), options, (server, listening) => server.listen(address.port, address.host, listening))
}

type HttpServer = http2.Http2Server | http2.Http2SecureServer

function listen(server: HttpServer, options: ServerOptions, start: (server: HttpServer, listening: () => void) => void): Promise<Server> {
  const routes = new Map(options.methods.map((method) => [`/${method.path}`, route(method)]))
  const sessions = new Set<http2.ServerHttp2Session>()
  server.on('session', (session: http2.ServerHttp2Session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
  })
  // A session's own error is told here too. Probes and callers that are done hang up without a word: nothing failed.
  server.on('sessionError', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ECONNRESET') options.log.debug('connection failed', { error })
  })
  server.on('stream', (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => {
    // A caller that goes away is no error of ours; its signal fires below.
    stream.on('error', () => {})
    const found = routes.get(headers[':path'] ?? '')
    if (found) void answer(stream, headers, found(), options)
    else finish(stream, new RpcError('Unimplemented', `unknown method ${headers[':path']}`))
  })
  const { promise, resolve, reject } = Promise.withResolvers<Server>()
  server.once('error', reject)
  start(server, () => {
    const address = server.address()
    const port = address && typeof address === 'object' ? address.port : 0
    resolve({
      port,
      renew: (tls) => (server as http2.Http2SecureServer).setSecureContext(tls),
      close: (grace = 0) => close(server, sessions, grace),
    })
  })
  return promise
}

async function close(server: HttpServer, sessions: Set<http2.ServerHttp2Session>, grace: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  for (const session of sessions) session.close()
  const late = setTimeout(() => {
    for (const session of sessions) session.destroy()
  }, grace)
  await closed
  clearTimeout(late)
}
