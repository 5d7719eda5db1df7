/** One peer: its handshake, its sessions, what waits for a session, and its timers (WireGuard, section 6). */
import { CookieJar } from './cookie.ts'
import type { Identity, Initiation, TransportKeys } from './handshake.ts'
import { type MakeCipher, rejectAfter, Session } from './session.ts'

/** Milliseconds between initiations, and after the last one of a series. */
const rekeyTimeout = 5000
const rekeyAttempts = 18
/** Milliseconds of silence after which a receiver of data answers with a keepalive. */
const keepaliveTimeout = 10_000
/** Milliseconds that are added to timers at random, so that two peers do not start at the same time. */
const jitter = 333
/** Packets that wait for a session. */
const maxStaged = 128
/** Milliseconds between two initiations of a peer that are answered. */
const minInitiationInterval = 20

/** Where a peer is reached. */
export interface Endpoint {
  /** Its address and port as bytes that compare: sockaddr_in or sockaddr_in6. */
  readonly socketAddress: Uint8Array
}

/** What a peer needs of its device. */
export interface PeerActions {
  /** Starts a handshake, or tries again to. */
  initiate(peer: Peer, retry: boolean): void
  /** Sends an empty message. */
  keepalive(peer: Peer): void
  /** Forgets the index of a session or handshake. */
  release(index: number): void
}

type Timer = 'retransmit' | 'keepalive' | 'handshake' | 'forget' | 'persistent'

/** A peer. Times are milliseconds of a clock that does not jump. */
export class Peer implements Identity {
  presharedKey: Uint8Array = new Uint8Array(32)
  endpoint: Endpoint | undefined
  /** Milliseconds; 0 for none. */
  persistentKeepalive = 0
  allowedIps: { address: Uint8Array; bits: number }[] = []
  /** Wall clock of the last handshake in milliseconds; 0 before the first. */
  lastHandshake = 0
  receivedBytes = 0
  sentBytes = 0
  readonly cookies: CookieJar
  readonly staged: Uint8Array[] = []
  initiation: Initiation | undefined
  current: Session | undefined
  #previous: Session | undefined
  #next: Session | undefined
  readonly #timers = new Map<Timer, number>()
  #attempts = 0
  #lastSent = Number.NEGATIVE_INFINITY
  #lastAnswered = Number.NEGATIVE_INFINITY
  #lastTimestamp: Uint8Array = new Uint8Array(12)
  #anotherKeepalive = false
  #lateHandshake = false

  readonly #actions: PeerActions

  constructor(
    readonly publicKey: Uint8Array,
    actions: PeerActions,
  ) {
    this.#actions = actions
    this.cookies = new CookieJar(publicKey)
  }

  /** Keeps a packet until there is a session; the oldest makes room. */
  stage(packet: Uint8Array): void {
    if (this.staged.length >= maxStaged) this.staged.shift()
    this.staged.push(packet)
  }

  /** Whether an initiation may be sent now; it is recorded as sent. */
  mayInitiate(now: number, retry: boolean): boolean {
    if (!retry) this.#attempts = 0
    if (now - this.#lastSent < rekeyTimeout) return false
    this.#lastSent = now
    return true
  }

  /** Lets the next initiation be sent at once. */
  forgetAttempts(): void {
    this.#lastSent = Number.NEGATIVE_INFINITY
  }

  /** Whether an authentic initiation is new, and not one of too many. */
  acceptsInitiation(timestamp: Uint8Array, now: number): boolean {
    if (Buffer.compare(timestamp, this.#lastTimestamp) <= 0 || now - this.#lastAnswered < minInitiationInterval) return false
    this.#lastTimestamp = timestamp
    this.#lastAnswered = now
    return true
  }

  /** Adds the session of a handshake. A responder's is not used before a message of it was received. */
  addSession(
    keys: TransportKeys,
    cipher: MakeCipher,
    indexes: { local: number; remote: number },
    initiator: boolean,
    now: number,
  ): Session {
    const session = new Session(keys, cipher, indexes.local, indexes.remote, initiator, now)
    if (initiator) {
      const older = this.#next ?? this.current
      if (this.#next) this.#drop(this.current)
      this.#next = undefined
      this.#drop(this.#previous)
      this.#previous = older
      this.current = session
    } else {
      this.#drop(this.#next)
      this.#next = session
      this.#drop(this.#previous)
      this.#previous = undefined
    }
    this.#timers.set('forget', now + rejectAfter * 3)
    return session
  }

  /** A message of a session was received: a session that waited for this becomes the current one, which is true once. */
  confirm(session: Session): boolean {
    if (session !== this.#next) return false
    this.#drop(this.#previous)
    this.#previous = this.current
    this.current = this.#next
    this.#next = undefined
    return true
  }

  /** Forgets every session and the handshake. */
  reset(): void {
    for (const session of [this.current, this.#previous, this.#next]) this.#drop(session)
    this.current = undefined
    this.#previous = undefined
    this.#next = undefined
    this.endInitiation()
  }

  /** Forgets the initiation that waits for a response. */
  endInitiation(): void {
    if (this.initiation) this.#actions.release(this.initiation.localIndex)
    this.initiation = undefined
  }

  #drop(session: Session | undefined): void {
    if (!session) return
    this.#actions.release(session.localIndex)
    session.close()
  }

  // Events that move the timers.

  initiated(now: number): void {
    this.#timers.set('retransmit', now + rekeyTimeout + Math.random() * jitter)
  }

  completed(wallClock: number): void {
    this.#timers.delete('retransmit')
    this.#attempts = 0
    this.#lateHandshake = false
    this.lastHandshake = wallClock
  }

  dataSent(now: number): void {
    if (!this.#timers.has('handshake')) this.#timers.set('handshake', now + keepaliveTimeout + rekeyTimeout + Math.random() * jitter)
  }

  dataReceived(now: number): void {
    if (this.#timers.has('keepalive')) this.#anotherKeepalive = true
    else this.#timers.set('keepalive', now + keepaliveTimeout)
  }

  messageSent(now: number): void {
    this.#timers.delete('keepalive')
    this.#traversed(now)
  }

  messageReceived(now: number): void {
    this.#timers.delete('handshake')
    this.#traversed(now)
  }

  #traversed(now: number): void {
    if (this.persistentKeepalive > 0) this.#timers.set('persistent', now + this.persistentKeepalive)
  }

  /** A receiver starts a handshake once shortly before a session that it initiated ends. */
  refresh(now: number): void {
    const { current } = this
    if (this.#lateHandshake || !current?.initiator || now - current.since < rejectAfter - keepaliveTimeout - rekeyTimeout) return
    this.#lateHandshake = true
    this.#actions.initiate(this, false)
  }

  /** Sets the interval of keepalives in milliseconds and sends the first at once. */
  setKeepalive(interval: number): void {
    const starts = interval > 0 && this.persistentKeepalive === 0
    this.persistentKeepalive = interval
    if (interval === 0) this.#timers.delete('persistent')
    if (starts) this.#actions.keepalive(this)
  }

  /** When the next timer expires; Infinity for never. */
  nextTimer(): number {
    return Math.min(Number.POSITIVE_INFINITY, ...this.#timers.values())
  }

  /** Runs the timers that have expired. */
  tick(now: number): void {
    for (const [timer, at] of [...this.#timers]) {
      if (at > now) continue
      this.#timers.delete(timer)
      this.#expire(timer, now)
    }
  }

  #expire(timer: Timer, now: number): void {
    if (timer === 'retransmit') this.#retry(now)
    else if (timer === 'handshake') this.#actions.initiate(this, false)
    else if (timer === 'forget') this.reset()
    else if (timer === 'persistent') {
      this.#traversed(now)
      this.#actions.keepalive(this)
    } else {
      this.#actions.keepalive(this)
      if (this.#anotherKeepalive) this.#timers.set('keepalive', now + keepaliveTimeout)
      this.#anotherKeepalive = false
    }
  }

  #retry(now: number): void {
    if (this.#attempts >= rekeyAttempts) {
      this.#timers.delete('keepalive')
      this.staged.length = 0
      this.endInitiation()
      if (!this.#timers.has('forget')) this.#timers.set('forget', now + rejectAfter * 3)
      return
    }
    this.#attempts++
    this.forgetAttempts()
    this.#actions.initiate(this, true)
  }
}
