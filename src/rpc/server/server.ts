/**
 * Serves methods over HTTP/2: on a unix socket with its owner and mode, or over TLS. See call.ts for the handling of a
 * call.
 */

import { chmodSync, chownSync, mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { background } from '../../cosi/background.ts'
import { endWith } from '../frame.ts'
import { type Listener, listen, type Place, type ServerTls } from '../http2/listen.ts'
import { Shares } from '../http2/shares.ts'
import { RpcError } from '../status.ts'
import { answer, route, type ServerOptions } from './call.ts'
import { RequestClock } from './requests.ts'

/** A listening server. */
export type Server = Listener

/** The path of a unix socket and its permissions. */
export interface UnixAddress {
  readonly path: string
  readonly mode?: number
  readonly uid?: number
  readonly gid?: number
}

const maxStreams = 10_000

/** Serves on a unix socket; creates its directory and replaces an existing socket. */
export async function serveUnix(address: UnixAddress, options: ServerOptions): Promise<Server> {
  mkdirSync(dirname(address.path), { recursive: true, mode: 0o755 })
  rmSync(address.path, { force: true })
  const server = serve({ unix: address.path }, options)
  chmodSync(address.path, address.mode ?? 0o600)
  if (address.uid !== undefined) chownSync(address.path, address.uid, address.gid ?? address.uid)
  return server
}

/** Serves over TLS on all addresses, or one. */
export async function serveTls(address: { port: number; host?: string }, tls: ServerTls, options: ServerOptions): Promise<Server> {
  return serve({ host: address.host ?? '::', port: address.port, tls }, options)
}

/** Serves without encryption on a TCP port: for loopback and tests. */
export async function servePlain(address: { port: number; host: string }, options: ServerOptions): Promise<Server> {
  return serve(address, options)
}

function serve(place: Place, options: ServerOptions): Server {
  const serving = { ...options, clock: new RequestClock(options.requestTime) }
  const routes = new Map(options.methods.map((method) => [`/${method.path}`, route(method)]))
  return listen(place, {
    maxStreams,
    ...(options.shares && { shares: new Shares(options.shares) }),
    welcome: () => ({
      request: (stream, headers) => {
        const found = routes.get(String(headers[':path']))
        if (found) background(() => answer(stream, headers, found(), serving), options.log, 'call failed', { method: headers[':path'] })
        else endWith(stream, new RpcError('Unimplemented', `unknown method ${headers[':path']}`))
      },
    }),
    // Probes and finished callers disconnect without notice: that is no failure.
    trouble: (what, details) => options.log.debug(what, { ...details }),
  })
}
