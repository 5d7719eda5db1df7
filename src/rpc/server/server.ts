/**
 * Serves methods over HTTP/2: on a unix socket with its owner and mode, or over TLS. A call is admitted by its roles,
 * its messages decoded, its handler run, its replies sent no faster than the caller takes them, and whatever the
 * handler throws becomes its status.
 */
import { chmodSync, chownSync, mkdirSync, rmSync } from 'node:fs'
import http2 from 'node:http2'
import type { Socket } from 'node:net'
import { dirname } from 'node:path'
import type { SecureContextOptions, TLSSocket } from 'node:tls'
import type { Logger } from '../../cosi/log.ts'
import type { Store } from '../../cosi/store.ts'
import { decode, encode } from '../codec.ts'
import { drained } from '../drained.ts'
import { FrameReader, frameHeader, parseTimeout, sealFrame, statusTrailers } from '../frame.ts'
import { type Metadata, metadataOf } from '../metadata.ts'
import { type MethodShape, methodShape } from '../schema.ts'
import { RpcError, toRpcError } from '../status.ts'
import { allRoles, type Context, type Method, type Role } from './method.ts'

/** Who is calling, before anything is decided. */
export interface Caller {
  readonly metadata: Metadata
  readonly socket: Socket | TLSSocket
}

/** What a server serves, and to whom. */
export interface ServerOptions {
  readonly methods: readonly Method[]
  readonly store: Store
  readonly log: Logger
  /** The roles a caller has. Without it they are those its `talos-role` metadata names: only for sockets that are guarded otherwise. */
  readonly roles?: (caller: Caller) => ReadonlySet<Role>
}

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

type Headers = http2.IncomingHttpHeaders
type Stream = http2.ServerHttp2Stream

const settings: http2.Settings = { initialWindowSize: 1 << 20, maxConcurrentStreams: 10_000 }

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

/** The roles a caller names in its metadata. */
export function namedRoles({ metadata }: Pick<Caller, 'metadata'>): ReadonlySet<Role> {
  const named = metadata['talos-role'] ?? []
  return new Set(allRoles.filter((role) => named.includes(role)))
}

type HttpServer = http2.Http2Server | http2.Http2SecureServer

function listen(server: HttpServer, options: ServerOptions, start: (server: HttpServer, listening: () => void) => void): Promise<Server> {
  const routes = new Map(options.methods.map((method) => [`/${method.path}`, route(method)]))
  const sessions = new Set<http2.ServerHttp2Session>()
  server.on('session', (session: http2.ServerHttp2Session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
    session.on('error', (error: Error) => options.log.debug('connection failed', { error }))
  })
  server.on('sessionError', (error: Error) => options.log.debug('connection failed', { error }))
  server.on('stream', (stream: Stream, headers: Headers) => {
    // A caller that goes away is no error of ours; its signal fires below.
    stream.on('error', () => {})
    const found = routes.get(headers[':path'] ?? '')
    if (found) void serve(stream, headers, found(), options)
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

interface Route {
  readonly method: Method
  readonly shape: MethodShape
}

/** The shape is looked up at the first call, so that no .proto is parsed before it is needed. */
function route(method: Method): () => Route {
  let found: Route | undefined
  return () => {
    found ??= { method, shape: methodShape(method.path) }
    return found
  }
}

async function serve(stream: Stream, headers: Headers, route: Route, options: ServerOptions): Promise<void> {
  const call = new Call(stream, headers, options)
  try {
    call.admit(route.method)
    await run(call, route)
    finish(stream)
  } catch (error) {
    const failure = call.signal.aborted ? toRpcError(call.signal.reason) : toRpcError(error)
    if (failure.status === 'Unknown') options.log.warn('method failed', { method: route.method.path, error: failure })
    finish(stream, failure)
  } finally {
    call.end()
  }
}

async function run(call: Call, { method, shape }: Route): Promise<void> {
  const { stream } = call
  const handle = method.handle as (request: unknown, context: Context) => unknown
  const request = shape.clientStreams ? requests(call, shape) : decode(shape.request, await single(call))
  if (!shape.serverStreams) {
    const reply = await call.unlessGone(handle(request, call))
    respond(stream)
    stream.write(sealFrame(encode(shape.reply, reply as object, frameHeader)))
    return
  }
  const replies = (handle(request, call) as AsyncIterable<object>)[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = await call.unlessGone(replies.next())
      if (next.done) return
      respond(stream)
      if (!stream.write(sealFrame(encode(shape.reply, next.value, frameHeader)))) await call.unlessGone(drained(stream))
    }
  } finally {
    // Ends the handler's generator too; one that never yields again must not hold this call.
    void replies.return?.()?.catch(() => {})
  }
}

/** The request of a call that has just one. */
function single(call: Call): Promise<Buffer> {
  const { stream } = call
  const frames = new FrameReader()
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  let message: Buffer | undefined
  stream.on('data', (chunk: Buffer) => {
    try {
      for (const next of frames.push(chunk)) {
        if (message) throw new RpcError('Internal', 'more than one request for a method that takes one')
        message = next
      }
    } catch (error) {
      reject(error)
    }
  })
  stream.on('end', () => {
    if (message) resolve(message)
    else reject(new RpcError('Internal', 'the request is missing'))
  })
  return call.unlessGone(promise)
}

async function* requests(call: Call, { request }: MethodShape): AsyncGenerator<object, void> {
  const frames = new FrameReader()
  for await (const chunk of call.stream) for (const message of frames.push(chunk as Buffer)) yield decode(request, message)
  frames.end()
}

function respond(stream: Stream): void {
  if (stream.headersSent || stream.destroyed) return
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
}

/** Sends the status: as trailers after replies, in the only headers without. */
function finish(stream: Stream, error?: RpcError): void {
  if (stream.destroyed || stream.closed) return
  const trailers = statusTrailers(error)
  if (!stream.headersSent) {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...trailers }, { endStream: true })
    return
  }
  stream.once('wantTrailers', () => stream.sendTrailers(trailers))
  stream.end()
}

/** One call while it runs: what its handler sees as context. */
class Call implements Context {
  readonly stream: Stream
  readonly metadata: Metadata
  readonly store: Store
  readonly log: Logger
  readonly roles: ReadonlySet<Role>
  readonly #abort = new AbortController()
  readonly #waiting = new Set<(reason: RpcError) => void>()
  #deadline?: ReturnType<typeof setTimeout>

  constructor(stream: Stream, headers: Headers, { store, log, roles }: ServerOptions) {
    this.stream = stream
    this.metadata = metadataOf(headers)
    this.store = store
    this.log = log
    this.roles = (roles ?? namedRoles)({ metadata: this.metadata, socket: stream.session?.socket as Socket })
    stream.on('close', () => this.#leave(new RpcError('Canceled', 'the caller is gone')))
    const timeout = parseTimeout(headers['grpc-timeout'])
    if (timeout !== undefined)
      this.#deadline = setTimeout(() => this.#leave(new RpcError('DeadlineExceeded', 'deadline exceeded')), Math.min(timeout, 0x7fff_ffff))
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  get peer(): string {
    const { remoteAddress = '', remotePort } = (this.stream.session?.socket ?? {}) as Partial<Socket>
    return remotePort === undefined
      ? 'unix'
      : remoteAddress.includes(':')
        ? `[${remoteAddress}]:${remotePort}`
        : `${remoteAddress}:${remotePort}`
  }

  /** Throws unless the caller has one of the roles the method asks for. */
  admit({ access }: Method): void {
    if (access !== 'anyone' && !access.some((role) => this.roles.has(role))) throw new RpcError('PermissionDenied', 'not authorized')
  }

  /** Waits for a value, but no longer than the caller does. */
  async unlessGone<T>(value: T | Promise<T>): Promise<T> {
    if (!(value instanceof Promise)) return value
    // Not Promise.race: it would keep a reaction for every reply of an endless stream.
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    if (this.signal.aborted) reject(this.signal.reason)
    this.#waiting.add(reject)
    value.then(resolve, reject)
    try {
      return await promise
    } finally {
      this.#waiting.delete(reject)
    }
  }

  end(): void {
    clearTimeout(this.#deadline)
    this.#abort.abort(new RpcError('Canceled', 'the call has ended'))
  }

  #leave(reason: RpcError): void {
    this.#abort.abort(reason)
    for (const reject of this.#waiting) reject(reason)
  }
}
