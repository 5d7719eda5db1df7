/** The connections of a listener, from handshake to close: which are accepted, and which are closed. */
import { writeSync } from 'node:fs'
import type { PeerCertificate } from 'node:tls'
import { TokenBucket } from '../../timing/token-bucket.ts'
import { ConnectionError } from '../../wire/http2/error.ts'
import { authoritiesOf, expired, issuerOf } from './client-certificate.ts'
import * as limits from './limits.ts'
import type { ListenOptions, ServerTls } from './listen.ts'
import type { PeerSocket } from './output.ts'
import { Pace } from './pace.ts'
import { Session } from './session.ts'
import { addressKey, Shares } from './shares.ts'
import { alert, firstAlert, trafficSecret } from './tls-alert.ts'

/** State of a connection. */
export interface Connection {
  session?: Session
  deadline?: ReturnType<typeof setTimeout>
  /** The traffic secret of the first record after the handshake, until the client is accepted. */
  secret?: Buffer
}

/** A socket of the listener. */
export type Socket = Bun.Socket<Connection> & PeerSocket

/** Why a client is refused. */
interface Refusal {
  readonly why?: string
  readonly error?: Error | null
  /** The TLS alert to send. */
  readonly alert?: number
}

/** The name of a connection's cipher suite. */
function cipherOf(socket: Socket): string {
  return (socket as unknown as { getCipher(): { name?: string } }).getCipher().name ?? ''
}

const accepts = { rate: limits.acceptsPerSecond, burst: limits.acceptBurst }

/** The connections of one listener. */
export class Acceptor {
  tls: ServerTls | undefined
  readonly #options: ListenOptions
  readonly #sessions = new Set<Session>()
  readonly #shares: Shares
  /** Connections without an address are clients of their own. */
  #unnamed = 0
  /** What may be accepted before accepting pauses. */
  readonly #accepts = new TokenBucket(accepts)
  /** Connections that have not sent their preface, in order of arrival. */
  readonly #greeting = new Set<Socket>()
  #pinged = new WeakSet<Session>()
  readonly #pace = new Pace<Socket>()
  /** The certificates of accepted clients. */
  readonly #certificates = new Map<Session, PeerCertificate>()

  /** `overrun` pauses the runtime's accepting when too many connections arrive. */
  constructor(
    options: ListenOptions,
    tls: ServerTls | undefined,
    private readonly overrun: () => void,
  ) {
    this.#options = options
    this.#shares = options.shares ?? new Shares(limits.defaultShares)
    this.tls = tls
  }

  /**
   * A connection was accepted. The runtime accepts all pending connections before it does anything else, and refused clients may
   * reconnect at once: so none is refused before it has finished, and a flood that would not let it finish is interrupted.
   */
  opened(socket: Socket): void {
    socket.data = {}
    if (this.#accepts.spend(1) < 1) this.overrun()
    if (this.#greeting.size === limits.maxGreeting) setImmediate(this.#makeRoom)
    this.#greeting.add(socket)
    socket.data.deadline = setTimeout(
      () => this.#turnAway(socket, 'client sent no preface in time'),
      this.#options.greetingTime ?? limits.greetingTime,
    )
    if (this.tls) this.#pace.enter(socket, addressKey(socket.remoteAddress ?? ''))
    else this.#welcome(socket, undefined)
  }

  readonly #makeRoom = () => {
    while (this.#greeting.size > limits.maxGreeting) {
      const oldest = this.#oldestOfMost()
      if (!oldest) return
      this.#turnAway(oldest, 'too many connections in handshake')
    }
  }

  /** Stores a traffic secret of the connection. */
  agreed(socket: Socket, line: Uint8Array): void {
    if (this.tls?.clients !== 'required') return
    const secret = trafficSecret(Buffer.from(line).toString('latin1'))
    if (secret) socket.data.secret = secret
  }

  proved(socket: Socket, success: boolean, error: Error | null): void {
    const certificate = success && this.tls?.clients === 'required' ? socket.getPeerCertificate() : undefined
    const refusal = success ? this.#refusalOf(socket, certificate, error) : { why: 'client refused', error }
    if (refusal) {
      this.#refuse(socket, refusal)
      return
    }
    // The kernel detects peers that vanish without closing.
    socket.setKeepAlive(true, 30_000)
    socket.setNoDelay(true)
    this.#welcome(socket, certificate)
  }

  #refusalOf(socket: Socket, certificate: PeerCertificate | undefined, error: Error | null): Refusal | undefined {
    if (this.tls?.clients === 'required' && !certificate?.raw)
      return { why: 'client presented no certificate', alert: alert.certificateRequired }
    if (this.tls?.clients === 'required' && (error || !socket.authorized)) {
      const { code = '' } = (error ?? {}) as { code?: string }
      const invalid = code.startsWith('CERT_') ? alert.badCertificate : alert.unknownAuthority
      return { why: 'client refused', error, alert: code === 'CERT_HAS_EXPIRED' ? alert.certificateExpired : invalid }
    }
    if (socket.alpnProtocol !== 'h2') return { why: 'client does not speak HTTP/2' }
    const invalid = certificate && expired(certificate, Date.now())
    return invalid ? { why: `client refused: ${invalid}`, alert: alert.certificateExpired } : undefined
  }

  /** Uses other certificates and trusts other authorities; closes clients that are no longer trusted. */
  renew(tls: ServerTls): void {
    const before = this.tls
    this.tls = tls
    if (tls.ca === undefined || tls.ca === before?.ca) return
    const authorities = authoritiesOf(tls.ca)
    for (const [session, certificate] of this.#certificates)
      if (!issuerOf(certificate, authorities)) this.#expire(session, 'its authority is no longer accepted')
  }

  /** Closes connections whose certificates are no longer valid. */
  judge(now = Date.now()): void {
    for (const [session, certificate] of this.#certificates) {
      const invalid = expired(certificate, now)
      if (invalid) this.#expire(session, invalid)
    }
  }

  #expire(session: Session, why: string): void {
    this.#certificates.delete(session)
    this.#trouble(`connection closed: ${why}`, session.socket)
    session.close()
    setTimeout(() => session.destroy(new Error(why)), limits.expiredGrace).unref()
  }

  closed(socket: Socket, error: Error | undefined): void {
    this.#forget(socket)
    const { session } = socket.data ?? {}
    if (error && session && !session.closed) this.#trouble('connection failed', socket, error)
    session?.gone(error)
  }

  /** Closes idle connections, pings silent ones, and closes those that did not answer the last ping. */
  sweep(longest = limits.silentTime): void {
    const now = performance.now()
    for (const session of this.#sessions) {
      const silence = now - session.lastHeard
      if (session.size === 0 && silence > limits.idleTime) session.close()
      else if (silence < longest) this.#pinged.delete(session)
      // Only a missing answer counts: this timer may run late, and the last answer may be as old as the allowed silence.
      else if (this.#pinged.has(session)) session.destroy(new Error('client did not answer a keepalive ping'))
      else {
        this.#pinged.add(session)
        session.ping(() => {
          this.#pinged.delete(session)
        })
      }
    }
  }

  async close(grace: number): Promise<void> {
    for (const socket of [...this.#greeting]) if (!socket.data.session) this.#turnAway(socket, 'server ends')
    const { promise, resolve } = Promise.withResolvers<void>()
    const look = () => this.#sessions.size === 0 && resolve()
    const late = setTimeout(() => {
      for (const session of [...this.#sessions]) session.destroy(new Error('server shut down'))
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
    const welcome = this.#options.welcome({ socket, certificate })
    if (!welcome) {
      this.#refuse(socket, { alert: alert.badCertificate })
      return
    }
    delete socket.data.secret
    const { request, identity, maxStreams = this.#options.maxStreams, shareOf } = welcome
    const address = socket.remoteAddress || undefined
    const share = this.#shares.of({ address, identity: identity ?? (address ? undefined : `connection ${++this.#unnamed}`) })
    const session = new Session(socket, { side: 'server', request, maxStreams, share, ...(shareOf && { shareOf }) })
    socket.data.session = session
    const refusal = share.connect(session)
    if (refusal !== undefined) {
      this.#turnAway(socket, `client refused: ${refusal}`)
      return
    }
    this.#sessions.add(session)
    if (certificate) this.#certificates.set(session, certificate)
    session.whenSettled(() => this.#forget(socket))
    session.whenClosed((error) => {
      this.#sessions.delete(session)
      this.#certificates.delete(session)
      if (error instanceof ConnectionError) this.#trouble('connection violated the protocol', socket, error)
    })
  }

  /** The oldest unauthenticated connection of the address that has most of them. */
  #oldestOfMost(): Socket | undefined {
    const counts = new Map<string, { first: Socket; count: number }>()
    let most: { first: Socket; count: number } | undefined
    for (const socket of this.#greeting) {
      const address = addressKey(socket.remoteAddress ?? '')
      const counted = counts.get(address) ?? { first: socket, count: 0 }
      counts.set(address, counted)
      counted.count++
      if (!most || counted.count > most.count) most = counted
    }
    return most?.first
  }

  /**
   * Sends an alert that states why a client is refused. The socket is read for a while longer: if it were closed with unread
   * bytes, the kernel would drop the alert.
   */
  #refuse(socket: Socket, { why, error, alert: description }: Refusal): void {
    const { secret } = socket.data
    const record = secret && description !== undefined ? firstAlert(secret, cipherOf(socket), description) : undefined
    if (!record) {
      this.#turnAway(socket, why, error)
      return
    }
    if (why) this.#trouble(why, socket, error)
    delete socket.data.secret
    try {
      writeSync(socket.fd, record)
    } catch {
      // The client has disconnected.
    }
    clearTimeout(socket.data.deadline)
    socket.data.deadline = setTimeout(() => this.#turnAway(socket), limits.lingerTime)
  }

  #turnAway(socket: Socket, why?: string, error?: Error | null): void {
    this.#forget(socket)
    if (why) this.#trouble(why, socket, error)
    if (socket.data.session) socket.data.session.destroy()
    else socket.terminate()
  }

  #forget(socket: Socket): void {
    if (this.tls && !socket.data?.session) this.#pace.leave(socket, addressKey(socket.remoteAddress ?? ''))
    clearTimeout(socket.data?.deadline)
    this.#greeting.delete(socket)
  }

  #trouble(what: string, { remoteAddress }: PeerSocket, error?: Error | null): void {
    this.#options.trouble?.(what, { ...(remoteAddress && { peer: remoteAddress }), ...(error && { error }) })
  }
}
