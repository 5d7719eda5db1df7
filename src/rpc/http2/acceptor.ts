/** The connections of a listener, from their handshake to their end: who may come in, and who has to leave. */
import { writeSync } from 'node:fs'
import type { PeerCertificate } from 'node:tls'
import { authoritiesOf, expired, issuerOf } from './client-certificate.ts'
import * as limits from './limits.ts'
import type { ListenOptions, ServerTls } from './listen.ts'
import type { PeerSocket } from './output.ts'
import { Pace } from './pace.ts'
import { Session } from './session.ts'
import { addressKey, Shares } from './shares.ts'
import { alert, firstAlert, trafficSecret } from './tls-alert.ts'

/** What is known of a connection. */
export interface Connection {
  session?: Session
  deadline?: ReturnType<typeof setTimeout>
  /** Of the key that the first record after the handshake is sent under, until the client is let in. */
  secret?: Buffer
}

/** A socket of the listener. */
export type Socket = Bun.Socket<Connection> & PeerSocket

/** Why a client may not come in. */
interface Refusal {
  readonly why?: string
  readonly error?: Error | null
  /** The alert that tells it. */
  readonly alert?: number
}

/** The name of a connection's cipher suite. */
function cipherOf(socket: Socket): string {
  return (socket as unknown as { getCipher(): { name?: string } }).getCipher().name ?? ''
}

/** How many connections have come lately. */
class Arrivals {
  #left: number = limits.acceptBurst
  #since = performance.now()

  /** Counts one; true when it was the last for now. */
  take(): boolean {
    const now = performance.now()
    this.#left = Math.min(limits.acceptBurst, this.#left + ((now - this.#since) / 1000) * limits.acceptsPerSecond)
    this.#since = now
    this.#left--
    return this.#left < 1
  }
}

/** The connections of one listener. */
export class Acceptor {
  tls: ServerTls | undefined
  readonly #options: ListenOptions
  readonly #sessions = new Set<Session>()
  readonly #shares: Shares
  /** Connections without an address are clients of their own. */
  #unnamed = 0
  readonly #arrivals = new Arrivals()
  /** Those who have not greeted yet, in the order they came. */
  readonly #greeting = new Set<Socket>()
  #asked = new WeakSet<Session>()
  readonly #pace = new Pace<Socket>()
  /** What clients have proved themselves by. */
  readonly #certificates = new Map<Session, PeerCertificate>()

  /** `overrun` ends the runtime's accepting for a while, as too many come. */
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
   * A connection was accepted. The runtime accepts all that wait before it does anything else, and clients that are turned away
   * may come back at once: nobody is turned away before it has finished, and a flood that would not let it finish is cut off.
   */
  opened(socket: Socket): void {
    socket.data = {}
    if (this.#arrivals.take()) this.overrun()
    if (this.#greeting.size === limits.maxGreeting) setImmediate(this.#makeRoom)
    this.#greeting.add(socket)
    socket.data.deadline = setTimeout(
      () => this.#turnAway(socket, 'client did not greet in time'),
      this.#options.greetingTime ?? limits.greetingTime,
    )
    if (this.tls) this.#pace.enter(socket, addressKey(socket.remoteAddress ?? ''))
    else this.#welcome(socket, undefined)
  }

  readonly #makeRoom = () => {
    while (this.#greeting.size > limits.maxGreeting) {
      const oldest = this.#oldestOfMost()
      if (!oldest) return
      this.#turnAway(oldest, 'too many connections are being made')
    }
  }

  /** A secret of the connection was agreed. */
  agreed(socket: Socket, line: Uint8Array): void {
    if (this.tls?.clients !== 'required') return
    const secret = trafficSecret(Buffer.from(line).toString('latin1'))
    if (secret) socket.data.secret = secret
  }

  proved(socket: Socket, success: boolean, error: Error | null): void {
    const certificate = success && this.tls?.clients === 'required' ? socket.getPeerCertificate() : undefined
    const refusal = success ? this.#refusalOf(socket, certificate, error) : { why: 'client was turned away', error }
    if (refusal) {
      this.#refuse(socket, refusal)
      return
    }
    // Callers that vanish without a word are noticed by the kernel.
    socket.setKeepAlive(true, 30_000)
    socket.setNoDelay(true)
    this.#welcome(socket, certificate)
  }

  #refusalOf(socket: Socket, certificate: PeerCertificate | undefined, error: Error | null): Refusal | undefined {
    if (this.tls?.clients === 'required' && !certificate?.raw)
      return { why: 'client shows no certificate', alert: alert.certificateRequired }
    if (this.tls?.clients === 'required' && (error || !socket.authorized)) {
      const { code = '' } = (error ?? {}) as { code?: string }
      const invalid = code.startsWith('CERT_') ? alert.badCertificate : alert.unknownAuthority
      return { why: 'client was turned away', error, alert: code === 'CERT_HAS_EXPIRED' ? alert.certificateExpired : invalid }
    }
    if (socket.alpnProtocol !== 'h2') return { why: 'client does not speak HTTP/2' }
    const invalid = certificate && expired(certificate, Date.now())
    return invalid ? { why: `client was turned away: ${invalid}`, alert: alert.certificateExpired } : undefined
  }

  /** Uses other certificates and trusts other authorities; clients that are of none of them have to leave. */
  renew(tls: ServerTls): void {
    const before = this.tls
    this.tls = tls
    if (tls.ca === undefined || tls.ca === before?.ca) return
    const authorities = authoritiesOf(tls.ca)
    for (const [session, certificate] of this.#certificates)
      if (!issuerOf(certificate, authorities)) this.#expire(session, 'its authority is not accepted any more')
  }

  /** Ends connections whose certificates are valid no more. */
  judge(now = Date.now()): void {
    for (const [session, certificate] of this.#certificates) {
      const invalid = expired(certificate, now)
      if (invalid) this.#expire(session, invalid)
    }
  }

  #expire(session: Session, why: string): void {
    this.#certificates.delete(session)
    this.#trouble(`connection ends: ${why}`, session.socket)
    session.close()
    setTimeout(() => session.destroy(new Error(why)), limits.expiredGrace).unref()
  }

  closed(socket: Socket, error: Error | undefined): void {
    this.#forget(socket)
    const { session } = socket.data ?? {}
    if (error && session && !session.closed) this.#trouble('connection failed', socket, error)
    session?.gone(error)
  }

  /** Ends what is idle; asks those that were silent for long, and ends those that did not answer. */
  sweep(patience = limits.silentTime): void {
    const now = performance.now()
    for (const session of this.#sessions) {
      const silence = now - session.lastHeard
      if (session.size === 0 && silence > limits.idleTime) session.close()
      else if (silence < patience) this.#asked.delete(session)
      // Only who has not answered is gone: this turn may come late, and the answer be as old as the silence that is allowed.
      else if (this.#asked.has(session)) session.destroy(new Error('client gives no sign of life'))
      else {
        this.#asked.add(session)
        session.ping(() => {
          this.#asked.delete(session)
        })
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
      this.#turnAway(socket, `client was turned away: ${refusal}`)
      return
    }
    this.#sessions.add(session)
    if (certificate) this.#certificates.set(session, certificate)
    session.whenSettled(() => this.#forget(socket))
    session.whenClosed((error) => {
      this.#sessions.delete(session)
      this.#certificates.delete(session)
      if (error && error.name === 'ConnectionError') this.#trouble('connection broke the rules', socket, error)
    })
  }

  /** Of those who have not greeted, the oldest of the address that has most. */
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
   * Tells a client by an alert why it is refused. It is read from for a while then: were the connection closed while bytes
   * of it are unread, the kernel would throw the alert away.
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
      // The client has gone.
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
