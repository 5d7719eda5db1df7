/**
 * The machine API's door: a TLS listener that knows who calls and sends each call where it belongs.
 * Renewed certificates take effect for new connections; only a change between maintenance and service opens it anew.
 */
import http2, { type Http2SecureServer, type ServerHttp2Session } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import type { Logger } from '../../cosi/log.ts'
import { RpcError, toRpcError } from '../../rpc/status.ts'
import { gather, interleave } from './fan-out.ts'
import { forward, refuse } from './forward.ts'
import type { Identity } from './identity.ts'
import { anonymous, type Client, clientOf } from './roles.ts'
import { forwardedHeaders, type Reach, routeOf } from './routing.ts'
import { localTimes, Upstream, Upstreams } from './upstream.ts'

// The window stays at its usual size, see rpc/client/dial.ts.
const settings: http2.Settings = { maxConcurrentStreams: 4096 }

/** Where the door is and what lies behind. */
export interface DoorOptions {
  readonly host: string
  readonly port: number
  /** machined's socket. */
  readonly backend: string
  /** The port of other nodes' doors. */
  readonly remotePort: number
  readonly log: Logger
}

/** The door of one node. */
export class Door implements Reach {
  readonly #options: DoorOptions
  readonly #local: Upstream
  readonly #remotes: Upstreams
  readonly #sessions = new Set<ServerHttp2Session>()
  #identity?: Identity
  #server?: Http2SecureServer

  constructor(options: DoorOptions) {
    this.#options = options
    this.#local = new Upstream(() => ({ unix: options.backend }), localTimes)
    this.#remotes = new Upstreams((name) => {
      const { client, authorities } = this.#identity ?? {}
      if (!client) throw new RpcError('PermissionDenied', 'no request forwarding')
      const address = name.includes(':') && !name.startsWith('[') ? `[${name}]` : name
      return { address, defaultPort: options.remotePort, tls: { ca: authorities, cert: client.certificate, key: client.key } }
    })
  }

  get forwards(): boolean {
    return this.#identity?.client !== undefined && !this.#identity.maintenance
  }

  isOwn(target: string): boolean {
    return this.#identity?.own.has(target.replace(/^\[(.*)\]$/, '$1').toLowerCase()) ?? false
  }

  /** The port it listens on. */
  get port(): number {
    const address = this.#server?.address()
    return address && typeof address === 'object' ? address.port : 0
  }

  /** Serves as who the node now is. */
  async become(identity: Identity): Promise<void> {
    const before = this.#identity
    this.#identity = identity
    if (before && before.client?.certificate !== identity.client?.certificate) this.#remotes.drain()
    if (this.#server && before?.maintenance === identity.maintenance) {
      if (before.server.certificate === identity.server.certificate && before.authorities === identity.authorities) return
      this.#server.setSecureContext(secureContext(identity))
      this.#options.log.info('certificates renewed')
      return
    }
    const port = this.port || this.#options.port
    await this.close()
    await this.#listen(identity, port)
    this.#options.log.info('apid serves', { port: this.port, maintenance: identity.maintenance })
  }

  /** Stops listening and ends all connections. */
  async close(grace = 100): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (!server) return
    this.#remotes.drain()
    this.#local.drain()
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    for (const session of this.#sessions) session.close()
    const late = setTimeout(() => {
      for (const session of this.#sessions) session.destroy()
    }, grace)
    await closed
    clearTimeout(late)
  }

  #listen(identity: Identity, port: number): Promise<void> {
    const server = http2.createSecureServer({
      ...secureContext(identity),
      settings,
      minVersion: 'TLSv1.3',
      requestCert: true,
      rejectUnauthorized: !identity.maintenance,
    })
    server.on('session', (session: ServerHttp2Session) => this.#greet(session, identity.maintenance))
    // Callers that vanish without a word are noticed by the kernel.
    server.on('secureConnection', (socket: TLSSocket) => socket.setKeepAlive(true, 30_000))
    server.on('tlsClientError', (error: Error) => this.#options.log.debug('client was turned away', { error }))
    server.on('sessionError', (error: Error) => this.#options.log.debug('connection failed', { error }))
    this.#server = server
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    server.once('error', reject)
    server.listen(port, this.#options.host, () => resolve())
    return promise
  }

  #greet(session: ServerHttp2Session, maintenance: boolean): void {
    const known = maintenance ? anonymous : verified(session.socket as TLSSocket)
    const client = known && { ...known, address: session.socket.remoteAddress?.replace(/^::ffff:/, '') }
    if (!client) {
      this.#options.log.info('client was turned away: its certificate is not for clients only', { peer: session.socket.remoteAddress })
      session.destroy()
      return
    }
    this.#sessions.add(session)
    session.on('close', () => this.#sessions.delete(session))
    // Of a connection that is cut off its streams learn; there is nothing more to say.
    session.on('error', () => {})
    session.on('stream', (stream, headers) => {
      // A caller that goes away is no error of ours.
      stream.on('error', () => {})
      try {
        this.#serve(stream, headers, client)
      } catch (error) {
        refuse(stream, toRpcError(error))
      }
    })
  }

  #serve(stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders, client: Client): void {
    if (headers[':method'] !== 'POST' || !String(headers['content-type']).startsWith('application/grpc')) {
      stream.respond({ ':status': 415 }, { endStream: true })
      return
    }
    const route = routeOf(headers, this)
    if (route.kind === 'local') forward(stream, forwardedHeaders(headers, client, false), this.#local)
    else if (route.kind === 'one') forward(stream, forwardedHeaders(headers, client, true), this.#remotes.to(route.target))
    else this.#fanOut(stream, headers, client, route.targets).catch((error) => refuse(stream, toRpcError(error)))
  }

  async #fanOut(
    stream: http2.ServerHttp2Stream,
    headers: http2.IncomingHttpHeaders,
    client: Client,
    targets: readonly string[],
  ): Promise<void> {
    const { methodShape } = await import('../../rpc/schema.ts')
    const path = headers[':path'] ?? ''
    let shape: ReturnType<typeof methodShape>
    try {
      shape = methodShape(path)
    } catch {
      throw new RpcError('Unimplemented', `unknown method ${path}`)
    }
    const backends = targets.map((target) => {
      const own = this.isOwn(target)
      return { node: target, upstream: own ? this.#local : this.#remotes.to(target), headers: forwardedHeaders(headers, client, !own) }
    })
    await (shape.serverStreams ? interleave : gather)(stream, backends, shape.clientStreams)
  }
}

function verified(socket: TLSSocket): Client | undefined {
  return socket.authorized ? clientOf(socket.getPeerCertificate()) : undefined
}

function secureContext({ server, authorities, maintenance }: Identity): { cert: string; key: string; ca?: string } {
  return { cert: server.certificate, key: server.key, ...(!maintenance && { ca: authorities }) }
}
