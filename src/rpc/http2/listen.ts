/**
 * Takes HTTP/2 connections on a unix socket, on TCP, or over TLS. A client has a while to prove itself and to greet; one
 * that asks nothing for long is sent away, one that has gone without a word is found out.
 */
import type { PeerCertificate } from 'node:tls'
import { greetingTime, idleTime, maxConnections, maxGreeting, silentTime } from './limits.ts'
import type { PeerSocket } from './output.ts'
import { Session, type SessionOptions } from './session.ts'

/** How a listener proves who it is, and what it asks of clients. All in PEM. */
export interface ServerTls {
  readonly cert: string | Uint8Array
  readonly key: string | Uint8Array
  /** Whether clients must show a certificate of an authority that is trusted; those that are only asked may show any, or none. */
  readonly clients?: 'required' | 'asked'
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

/** What a listener does with those that come. */
export interface ListenOptions {
  /** Says what is done with each of someone's requests; undefined when they may not come in. */
  readonly welcome: (peer: Peer) => SessionOptions['request'] | undefined
  /** Requests that one connection may have running at a time. */
  readonly maxStreams: number
  /** Milliseconds that someone has to prove themselves and to greet. */
  readonly greetingTime?: number
  /** Is told of those that were turned away, and of connections that broke the rules. */
  readonly trouble?: (what: string, details: { peer?: string; error?: Error }) => void
}

/** A listener. */
export interface Listener {
  /** The TCP port, or 0. */
  readonly port: number
  /** Shows and trusts other certificates from now on; connections there are go on. */
  renew(tls: ServerTls): void
  /** Asks those that were silent for so many milliseconds whether they are there, and ends those that were asked before and did not answer; done by itself every minute. */
  sweep(patience?: number): void
  /** Takes no more connections, lets running calls go on for `grace` milliseconds, then ends them. */
  close(grace?: number): Promise<void>
}

interface Connection {
  session?: Session
  deadline?: ReturnType<typeof setTimeout>
}

type Socket = Bun.Socket<Connection> & PeerSocket

// TLS 1.3, and the name of HTTP/2 as the protocol's list of names has it.
const tlsVersion = 0x0304
const alpn = Buffer.from('\x02h2')

/** Listens. Throws when the address is not to be had. */
export function listen(place: Place, options: ListenOptions): Listener {
  const taking = new Taking(options, 'tls' in place ? place.tls : undefined)
  let server = open(place, taking)
  const port = 'port' in server ? server.port : 0
  const sweep = setInterval(() => taking.sweep(), silentTime)
  sweep.unref()
  return {
    port,
    renew(tls) {
      if ('unix' in place) return
      taking.tls = tls
      // Certificates belong to the listening socket: it is replaced within this turn, so nobody finds the door shut.
      server.stop(false)
      server = open({ ...place, port, tls }, taking)
    },
    sweep: (patience) => taking.sweep(patience),
    async close(grace = 0) {
      clearInterval(sweep)
      server.stop(false)
      await taking.close(grace)
    },
  }
}

function open(place: Place, taking: Taking): Bun.TCPSocketListener<Connection> | Bun.UnixSocketListener<Connection> {
  const socket = handlers(taking)
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
    rejectUnauthorized: clients === 'required',
    ALPNProtocols: alpn,
    minVersion: tlsVersion,
  } as Bun.TLSOptions
}

function handlers(taking: Taking): Bun.SocketHandler<Connection> {
  return {
    open: (socket) => taking.opened(socket as Socket),
    handshake: (socket, success, error) => taking.proved(socket as Socket, success, error),
    data: (socket, chunk) => socket.data.session?.receive(chunk),
    drain: (socket) => socket.data.session?.drained(),
    close: (socket, error) => taking.closed(socket as Socket, error),
    error: (socket, error) => taking.closed(socket as Socket, error),
  }
}

/** The connections of one listener. */
class Taking {
  tls: ServerTls | undefined
  readonly #options: ListenOptions
  readonly #sessions = new Set<Session>()
  /** Those who have not greeted yet, in the order they came. */
  readonly #greeting = new Set<Socket>()
  #asked = new WeakSet<Session>()

  constructor(options: ListenOptions, tls: ServerTls | undefined) {
    this.#options = options
    this.tls = tls
  }

  opened(socket: Socket): void {
    socket.data = {}
    if (this.#greeting.size >= maxGreeting) {
      const [oldest] = this.#greeting
      if (oldest) this.#turnAway(oldest, 'too many clients at the door')
    }
    this.#greeting.add(socket)
    socket.data.deadline = setTimeout(
      () => this.#turnAway(socket, 'client did not greet in time'),
      this.#options.greetingTime ?? greetingTime,
    )
    if (!this.tls) this.#welcome(socket, undefined)
  }

  proved(socket: Socket, success: boolean, error: Error | null): void {
    const required = this.tls?.clients === 'required'
    if (required ? !success || error || !socket.authorized : !success) this.#turnAway(socket, 'client was turned away', error)
    else if (socket.alpnProtocol !== 'h2') this.#turnAway(socket, 'client does not speak HTTP/2')
    else {
      // Callers that vanish without a word are noticed by the kernel.
      socket.setKeepAlive(true, 30_000)
      socket.setNoDelay(true)
      this.#welcome(socket, required ? socket.getPeerCertificate() : undefined)
    }
  }

  closed(socket: Socket, error: Error | undefined): void {
    this.#forget(socket)
    const { session } = socket.data ?? {}
    if (error && session && !session.closed) this.#trouble('connection failed', socket, error)
    session?.gone(error)
  }

  /** Ends what is idle; asks those that were silent for long, and ends those that did not answer. */
  sweep(patience = silentTime): void {
    const now = Date.now()
    for (const session of this.#sessions) {
      const silence = now - session.lastHeard
      if (session.size === 0 && silence > idleTime) session.close()
      else if (silence < patience) this.#asked.delete(session)
      // Only who has not answered is gone: this turn may come late, and the answer be as old as the silence that is allowed.
      else if (this.#asked.has(session)) session.destroy(new Error('client gives no sign of life'))
      else {
        this.#asked.add(session)
        session.ping(() => void this.#asked.delete(session))
      }
    }
  }

  async close(grace: number): Promise<void> {
    for (const socket of [...this.#greeting]) if (!socket.data.session) this.#turnAway(socket, 'server ends')
    const { promise, resolve } = Promise.withResolvers<void>()
    const look = () => this.#sessions.size === 0 && resolve()
    const late = setTimeout(() => {
      for (const session of [...this.#sessions]) session.destroy(new Error('server ends'))
    }, grace)
    for (const session of [...this.#sessions]) {
      session.whenClosed(() => queueMicrotask(look))
      session.close()
    }
    look()
    await promise
    clearTimeout(late)
  }

  #welcome(socket: Socket, certificate: PeerCertificate | undefined): void {
    const request = this.#options.welcome({ socket, certificate })
    const room = this.#sessions.size < maxConnections || this.#makeRoom()
    if (!request || !room) {
      this.#turnAway(socket, room ? undefined : 'too many connections')
      return
    }
    const session = new Session(socket, { side: 'server', request, maxStreams: this.#options.maxStreams })
    socket.data.session = session
    this.#sessions.add(session)
    session.whenSettled(() => this.#forget(socket))
    session.whenClosed((error) => {
      this.#sessions.delete(session)
      if (error && error.name === 'ConnectionError') this.#trouble('connection broke the rules', socket, error)
    })
  }

  #makeRoom(): boolean {
    for (const session of this.#sessions)
      if (session.size === 0) {
        session.close()
        return true
      }
    return false
  }

  #turnAway(socket: Socket, why?: string, error?: Error | null): void {
    this.#forget(socket)
    if (why) this.#trouble(why, socket, error ?? undefined)
    if (socket.data.session) socket.data.session.destroy()
    else socket.terminate()
  }

  #forget(socket: Socket): void {
    clearTimeout(socket.data?.deadline)
    this.#greeting.delete(socket)
  }

  #trouble(what: string, { remoteAddress }: Socket, error?: Error): void {
    this.#options.trouble?.(what, { ...(remoteAddress && { peer: remoteAddress }), ...(error && { error }) })
  }
}
