/**
 * The gateway of the machine API: a TLS listener that authenticates callers and forwards each call to its node.
 * Renewed certificates take effect for new connections; only a change between maintenance and service, or of the address, reopens
 * the listener.
 */
import type { X509Certificate } from 'node:crypto'
import { systemClock } from '../../cosi/clock.ts'
import type { Logger } from '../../cosi/log.ts'
import { newConnection } from '../../rpc/caller-metadata.ts'
import { endWith } from '../../rpc/frame.ts'
import { authoritiesOf, issuerOf } from '../../rpc/http2/client-certificate.ts'
import { type Listener, listen, type Peer, type ServerTls, type Welcome } from '../../rpc/http2/listen.ts'
import { Shares } from '../../rpc/http2/shares.ts'
import type { Stream } from '../../rpc/http2/stream.ts'
import { RequestClock } from '../../rpc/server/requests.ts'
import { RpcError, toRpcError } from '../../rpc/status.ts'
import { withRetries } from '../../timing/retry.ts'
import { bracketed, unbracketed } from '../../wire/host-port.ts'
import type { Headers } from '../../wire/http2/hpack.ts'
import { AccessLog } from './access-log.ts'
import { Dials } from './dials.ts'
import { gather, interleave } from './fan-out.ts'
import { forward } from './forward.ts'
import type { Identity } from './identity.ts'
import { apidShares, maxNodeStreams, maxStreams } from './limits.ts'
import { type Client, clientOf, visitorOf } from './roles.ts'
import { callerOf, type FanOut, forwardedHeaders, type Reach, routeOf } from './routing.ts'
import { localTimes, remoteTimes, type Upstream, Upstreams, type Way } from './upstream.ts'

/** Addresses of the gateway and its upstreams. */
export interface GatewayOptions {
  /** Used where the identity names no address of its own. */
  readonly host: string
  readonly port: number
  /** machined's socket. */
  readonly backend: string
  /** The port of other nodes' gateways. */
  readonly remotePort: number
  readonly log: Logger
  /** Milliseconds in which a request to several nodes must be whole, when not the usual time. */
  readonly requestTime?: number
  /** Takes lines about calls. */
  readonly access?: (lines: string) => void
}

/** The API gateway of one node. */
export class Gateway implements Reach {
  readonly #options: GatewayOptions
  /** machined, on one connection per client: a client that does not read stalls no other, here and in machined. */
  readonly #local: Upstreams
  readonly #remotes: Upstreams
  readonly #dials = new Dials()
  readonly #shares = new Shares(apidShares)
  readonly #access: AccessLog | undefined
  /** For requests that are collected here. */
  readonly #clock: RequestClock
  #identity?: Identity
  /** Those whose certificates are accepted. */
  #authorities: readonly X509Certificate[] = []
  #listener?: Listener | undefined

  constructor(options: GatewayOptions) {
    this.#options = options
    this.#access = options.access && new AccessLog(options.access)
    this.#clock = new RequestClock(options.requestTime)
    this.#local = new Upstreams(() => ({ unix: options.backend }), localTimes)
    this.#remotes = new Upstreams((name) => {
      const { client, authorities } = this.#identity ?? {}
      if (!client) throw new RpcError('PermissionDenied', 'no request forwarding')
      return {
        address: bracketed(name),
        defaultPort: options.remotePort,
        tls: { ca: authorities, cert: client.certificate, key: client.key },
      }
    }, remoteTimes)
  }

  get forwards(): boolean {
    return this.#identity?.client !== undefined && !this.#identity.maintenance
  }

  isOwn(target: string): boolean {
    return this.#identity?.own.has(unbracketed(target).toLowerCase()) ?? false
  }

  /** The port it listens on. */
  get port(): number {
    return this.#listener?.port ?? 0
  }

  /** Serves with a new identity of the node. */
  async become(identity: Identity): Promise<void> {
    const before = this.#identity
    this.#identity = identity
    this.#authorities = identity.maintenance ? [] : authoritiesOf(identity.authorities)
    if (before && before.client?.certificate !== identity.client?.certificate) this.#remotes.drain()
    if (this.#listener && before?.maintenance === identity.maintenance && before.host === identity.host) {
      if (before.server.certificate === identity.server.certificate && before.authorities === identity.authorities) return
      await this.#listener.renew(serverTls(identity))
      this.#options.log.info('certificates renewed')
      return
    }
    const port = this.port || this.#options.port
    await this.close()
    if (identity.host === undefined) return
    // For a moment the address may be in use, by the apid before this one.
    const { log } = this.#options
    await withRetries(
      'listen',
      () => this.#listen(identity, port),
      (problem, error) => log.warn(problem, { port, error }),
    )
    log.info('apid serves', { port: this.port, maintenance: identity.maintenance })
  }

  /** Stops listening and ends all connections. */
  async close(grace = 100): Promise<void> {
    const listener = this.#listener
    this.#listener = undefined
    if (!listener) return
    this.#remotes.drain()
    this.#local.drain()
    await listener.close(grace)
    this.#access?.close()
  }

  #listen(identity: Identity, port: number): void {
    const { log } = this.#options
    const host = identity.host || this.#options.host
    this.#listener = listen(
      { host, port, tls: serverTls(identity) },
      {
        maxStreams,
        shares: this.#shares,
        welcome: (peer) => this.#welcome(peer, identity),
        trouble: (what, details) => log.debug(what, { ...details }),
      },
    )
  }

  #welcome({ socket, certificate }: Peer, { maintenance, host }: Pick<Identity, 'maintenance' | 'host'>): Welcome | undefined {
    const address = socket.remoteAddress?.replace(/^::ffff:/, '')
    const known = maintenance ? visitorOf(address, host) : certificate && clientOf(certificate)
    if (!known) {
      this.#options.log.info('client refused: its certificate is not for clients only', { peer: address })
      return undefined
    }
    const identity = maintenance ? undefined : certificate?.fingerprint256
    const authority = maintenance ? undefined : certificate && issuerOf(certificate, this.#authorities)?.fingerprint256
    const client = {
      ...known,
      ...(address && { address }),
      ...(identity && { identity }),
      ...(authority && { authority }),
      since: systemClock.elapsed(),
    }
    const request = (stream: Stream, headers: Headers) => {
      this.#access?.watch(stream, headers, client)
      try {
        this.#serve(stream, headers, client)
      } catch (error) {
        endWith(stream, toRpcError(error))
      }
    }
    if (!client.impersonator) return { request, identity }
    // One connection carries all callers that the other node forwards: each of them has a share of its own.
    return { request, identity, maxStreams: maxNodeStreams, shareOf: (headers) => this.#shares.of(callerOf(headers, client)) }
  }

  #serve(stream: Stream, headers: Headers, client: Client): void {
    if (headers[':method'] !== 'POST' || !String(headers['content-type']).startsWith('application/grpc')) {
      stream.respond({ ':status': 415 }, true)
      return
    }
    const route = routeOf(headers, this)
    if (route.kind === 'local') forward(stream, forwardedHeaders(headers, client, false), this.#localOf(stream))
    else if (route.kind === 'one') {
      if (headers[newConnection] !== undefined && client.roles.includes('os:admin')) this.#remotes.renew(route.target)
      forward(stream, forwardedHeaders(headers, client, true), this.#remoteOf(stream, client, route.target))
    } else this.#fanOut(stream, headers, client, route).catch((error) => endWith(stream, toRpcError(error)))
  }

  #localOf({ share }: Stream): Upstream {
    return this.#local.to(share?.key ?? '')
  }

  /** The connection to another node. A client that dials many nodes waits for its turn, and delays no other client. */
  #remoteOf(stream: Stream, client: Client, target: string): Way {
    const dial = () => this.#remotes.to(target).connection()
    const { identity = '' } = client
    return {
      connection: () => this.#remotes.ready(target)?.connection() ?? this.#dials.run(identity, () => stream.closed, dial),
    }
  }

  async #fanOut(stream: Stream, headers: Headers, client: Client, { targets, shape }: FanOut): Promise<void> {
    // Each node costs as much as a call of its own.
    stream.weigh(targets.length - 1)
    // The same for all nodes: they may be large. Replies are cut into messages here, so they must come uncompressed.
    const sent = (remote: boolean) => ({ ...forwardedHeaders(headers, client, remote), 'grpc-accept-encoding': 'identity' })
    const [local, remote] = [sent(false), sent(true)]
    const backends = targets.map((target) =>
      this.isOwn(target)
        ? { node: target, upstream: this.#localOf(stream), headers: local }
        : { node: target, upstream: this.#remoteOf(stream, client, target), headers: remote },
    )
    await (shape.serverStreams ? interleave : gather)(stream, backends, shape, this.#clock)
  }
}

function serverTls({ server, authorities, maintenance }: Identity): ServerTls {
  const own = { cert: server.certificate, key: server.key }
  return maintenance ? { ...own, clients: 'requested' } : { ...own, clients: 'required', ca: authorities }
}
