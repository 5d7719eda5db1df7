/**
 * Accepts HTTP/2 connections on a unix socket, on TCP, or over TLS. A client has limited time to authenticate and to send
 * its preface. Idle clients are disconnected, and clients that vanished are detected by pings.
 */

import type { PeerCertificate } from 'node:tls'
import { Acceptor, type Connection, type Socket } from './acceptor.ts'
import * as limits from './limits.ts'
import type { PeerSocket } from './output.ts'
import type { SessionOptions } from './session.ts'
import type { Shares } from './shares.ts'

/** The server's certificate, and whether clients need one. All in PEM. */
export interface ServerTls {
  readonly cert: string | Uint8Array
  readonly key: string | Uint8Array
  /** Whether clients must present a certificate of a trusted authority; with `requested` they may present any, or none. */
  readonly clients?: 'required' | 'requested' | undefined
  /** The trusted authorities. */
  readonly ca?: string
}

/** Where to listen. */
export type Place = { readonly unix: string } | { readonly host: string; readonly port: number; readonly tls?: ServerTls }

/** A connected client. */
export interface Peer {
  readonly socket: PeerSocket
  /** The certificate, verified; undefined when none was required. */
  readonly certificate: PeerCertificate | undefined
}

/** How an accepted client is served. */
export interface Welcome {
  readonly request: NonNullable<SessionOptions['request']>
  /** The client's identity, if known; limits are shared by identity and address. */
  readonly identity?: string | undefined
  /** Concurrent requests of this client, when different from `maxStreams` of the listener. */
  readonly maxStreams?: number | undefined
  /** The client that a call is charged to, when it is another one. */
  readonly shareOf?: SessionOptions['shareOf']
}

/** Options of a listener. */
export interface ListenOptions {
  /** Accepts a client; undefined refuses it. */
  readonly welcome: (peer: Peer) => Welcome | undefined
  /** Concurrent requests of one connection. */
  readonly maxStreams: number
  /** What clients may hold. Default: limits of its own for each listener. */
  readonly shares?: Shares
  /** Milliseconds for handshake, authentication and preface. */
  readonly greetingTime?: number
  /** Called for refused clients and for protocol violations. */
  readonly trouble?: (what: string, details: { peer?: string; error?: Error }) => void
}

/** A listener. */
export interface Listener {
  /** The TCP port, or 0. */
  readonly port: number
  /** Replaces certificates and trusted authorities; connections of clients that are still trusted continue. */
  renew(tls: ServerTls): Promise<void>
  /** Pings clients that were silent for `silence` milliseconds, and closes those that did not answer the last ping; runs every minute. */
  sweep(silence?: number): void
  /** Closes connections whose client certificate is not valid at a time; runs every ten seconds. */
  judge(now?: number): void
  /** Stops accepting, lets running calls continue for `grace` milliseconds, then ends them. */
  close(grace?: number): Promise<void>
}

// TLS 1.3, and the ALPN name of HTTP/2 in wire format.
const tlsVersion = 0x0304
const alpn = Buffer.from('\x02h2')
// SSL_OP_NO_TICKET: a resumed session would not present its certificate again.
const noTickets = 0x4000

/** Listens. Throws when the address is not available. */
export function listen(place: Place, options: ListenOptions): Listener {
  const acceptor = new Acceptor(options, 'tls' in place ? place.tls : undefined, () => socket.pause())
  const socket = new ListeningSocket(place, acceptor, (error) => options.trouble?.('listening again failed', { error }))
  const sweep = setInterval(() => acceptor.sweep(), limits.silentTime)
  sweep.unref()
  const judge = setInterval(() => acceptor.judge(), limits.certificateInterval)
  judge.unref()
  return {
    port: socket.port,
    async renew(tls) {
      if ('unix' in place) return
      acceptor.renew(tls)
      await socket.renew(tls)
    },
    sweep: (silence) => acceptor.sweep(silence),
    judge: (now) => acceptor.judge(now),
    async close(grace = 0) {
      clearInterval(sweep)
      clearInterval(judge)
      socket.close()
      await acceptor.close(grace)
    },
  }
}

/** The listening socket, which is another after a renewal and after a pause. */
class ListeningSocket {
  readonly port: number
  #place: Place
  #server: Bun.TCPSocketListener<Connection> | Bun.UnixSocketListener<Connection>
  #pause: ReturnType<typeof setTimeout> | undefined
  #closed = false

  constructor(
    place: Place,
    private readonly acceptor: Acceptor,
    private readonly failed: (error: Error) => void,
  ) {
    this.#server = open(place, acceptor)
    this.port = 'port' in this.#server ? this.#server.port : 0
    this.#place = 'unix' in place ? place : { ...place, port: this.port }
  }

  /**
   * Certificates belong to the listening socket: it is replaced within one turn, so no client is refused meanwhile, and after the
   * connections that wait have been accepted: they would be reset with it. Where that fails, it is tried until it succeeds.
   */
  async renew(tls: ServerTls): Promise<void> {
    const place = { ...(this.#place as Exclude<Place, { unix: string }>), tls }
    this.#place = place
    await accepted()
    // A renewal since then replaces it too; one that is paused is opened with the new certificates.
    if (this.#place !== place || this.#pause !== undefined || this.#closed) return
    this.#server.stop(false)
    this.#resume()
  }

  /** Pauses accepting, which interrupts the runtime too; pending connections are reset. A unix socket stays open, as its path would be removed. */
  pause(): void {
    if ('unix' in this.#place || this.#pause !== undefined) return
    this.#server.stop(false)
    this.#pause = setTimeout(this.#resume, limits.acceptPause)
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#pause)
    this.#server.stop(false)
  }

  readonly #resume = () => {
    this.#pause = undefined
    try {
      this.#server = open(this.#place, this.acceptor)
    } catch (error) {
      this.failed(error as Error)
      this.#pause = setTimeout(this.#resume, limits.acceptPause)
    }
  }
}

/** Resolves when the runtime has accepted the connections that wait: it does so between two rounds of immediates. */
const accepted = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)))

function open(place: Place, acceptor: Acceptor): Bun.TCPSocketListener<Connection> | Bun.UnixSocketListener<Connection> {
  const socket = handlers(acceptor)
  if ('unix' in place) return Bun.listen<Connection>({ unix: place.unix, socket })
  const { host, port, tls } = place
  return Bun.listen<Connection>({ hostname: host, port, socket, ...(tls && { tls: secured(tls) }) })
}

function secured({ cert, key, clients, ca }: ServerTls): Bun.TLSOptions {
  return {
    cert: cert as string,
    key: key as string,
    ...(ca !== undefined && { ca }),
    requestCert: clients !== undefined,
    // Verified after the handshake, so that an alert can state the reason: the runtime would just close the connection.
    rejectUnauthorized: false,
    ALPNProtocols: alpn,
    minVersion: tlsVersion,
    secureOptions: noTickets,
  } as Bun.TLSOptions
}

interface Handlers extends Bun.SocketHandler<Connection> {
  keylog(socket: Bun.Socket<Connection>, line: Uint8Array): void
}

function handlers(acceptor: Acceptor): Handlers {
  return {
    keylog: (socket, line) => acceptor.agreed(socket as Socket, line),
    open: (socket) => acceptor.opened(socket as Socket),
    handshake: (socket, success, error) => acceptor.proved(socket as Socket, success, error),
    data: (socket, chunk) => socket.data.session?.receive(chunk),
    drain: (socket) => socket.data.session?.drained(),
    close: (socket, error) => acceptor.closed(socket as Socket, error),
    error: (socket, error) => acceptor.closed(socket as Socket, error),
  }
}
