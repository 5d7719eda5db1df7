/**
 * Takes HTTP/2 connections on a unix socket, on TCP, or over TLS. A client has a while to prove itself and to greet; one
 * that asks nothing for long is sent away, one that has gone without a word is found out.
 */

import type { PeerCertificate } from 'node:tls'
import { Acceptor, type Connection, type Socket } from './acceptor.ts'
import * as limits from './limits.ts'
import type { PeerSocket } from './output.ts'
import type { SessionOptions } from './session.ts'
import type { Shares } from './shares.ts'

/** How a listener proves who it is, and what it asks of clients. All in PEM. */
export interface ServerTls {
  readonly cert: string | Uint8Array
  readonly key: string | Uint8Array
  /** Whether clients must show a certificate of an authority that is trusted; those that are only asked may show any, or none. */
  readonly clients?: 'required' | 'requested'
  /** The authorities that are trusted. */
  readonly ca?: string
}

/** Where to listen. */
export type Place = { readonly unix: string } | { readonly host: string; readonly port: number; readonly tls?: ServerTls }

/** Someone who has come. */
export interface Peer {
  readonly socket: PeerSocket
  /** The certificate, verified; undefined when none was required. */
  readonly certificate: PeerCertificate | undefined
}

/** What is done with a client that may come in. */
export interface Welcome {
  readonly request: NonNullable<SessionOptions['request']>
  /** Who it is, where that is known; with its address it is what limits are shared by. */
  readonly identity?: string | undefined
  /** Requests that it may have running at a time, when not as many as others. */
  readonly maxStreams?: number | undefined
  /** The client that a call is charged to, when it is another than this one. */
  readonly shareOf?: SessionOptions['shareOf']
}

/** What a listener does with those that come. */
export interface ListenOptions {
  /** Says what is done with a client; undefined when it may not come in. */
  readonly welcome: (peer: Peer) => Welcome | undefined
  /** Requests that one connection may have running at a time. */
  readonly maxStreams: number
  /** What clients may hold; with limits of its own for each listener when not given. */
  readonly shares?: Shares
  /** Milliseconds that someone has to prove themselves and to greet. */
  readonly greetingTime?: number
  /** Is told of those that were turned away, and of connections that broke the rules. */
  readonly trouble?: (what: string, details: { peer?: string; error?: Error }) => void
}

/** A listener. */
export interface Listener {
  /** The TCP port, or 0. */
  readonly port: number
  /** Shows and trusts other certificates from now on; connections of clients that are still trusted go on. */
  renew(tls: ServerTls): void
  /** Asks those that were silent for so many milliseconds whether they are there, and ends those that were asked before and did not answer; done by itself every minute. */
  sweep(patience?: number): void
  /** Ends connections of clients whose certificate is not valid at a time; done by itself every ten seconds. */
  judge(now?: number): void
  /** Takes no more connections, lets running calls go on for `grace` milliseconds, then ends them. */
  close(grace?: number): Promise<void>
}

// TLS 1.3, and the name of HTTP/2 as the protocol's list of names has it.
const tlsVersion = 0x0304
const alpn = Buffer.from('\x02h2')
// SSL_OP_NO_TICKET: a resumed session would not show its certificate again.
const noTickets = 0x4000

/** Listens. Throws when the address is not to be had. */
export function listen(place: Place, options: ListenOptions): Listener {
  const acceptor = new Acceptor(options, 'tls' in place ? place.tls : undefined, () => socket.pause())
  const socket = new ListeningSocket(place, acceptor, (error) => options.trouble?.('listening again failed', { error }))
  const sweep = setInterval(() => acceptor.sweep(), limits.silentTime)
  sweep.unref()
  const judge = setInterval(() => acceptor.judge(), limits.certificateInterval)
  judge.unref()
  return {
    port: socket.port,
    renew(tls) {
      if ('unix' in place) return
      acceptor.renew(tls)
      socket.renew(tls)
    },
    sweep: (patience) => acceptor.sweep(patience),
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

  constructor(
    place: Place,
    private readonly acceptor: Acceptor,
    private readonly failed: (error: Error) => void,
  ) {
    this.#server = open(place, acceptor)
    this.port = 'port' in this.#server ? this.#server.port : 0
    this.#place = 'unix' in place ? place : { ...place, port: this.port }
  }

  /** Certificates belong to the listening socket: it is replaced within this turn, so nobody is refused meanwhile. */
  renew(tls: ServerTls): void {
    this.#place = { ...(this.#place as Exclude<Place, { unix: string }>), tls }
    if (this.#pause !== undefined) return
    this.#server.stop(false)
    this.#server = open(this.#place, this.acceptor)
  }

  /** Accepts nobody for a moment, which ends the runtime's accepting too; those that wait are reset. A path stays, as it would be gone. */
  pause(): void {
    if ('unix' in this.#place || this.#pause !== undefined) return
    this.#server.stop(false)
    this.#pause = setTimeout(this.#resume, limits.acceptPause)
  }

  close(): void {
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
    // Judged after the handshake, so that the refusal can say why: the runtime would close without a word.
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
