/** A WireGuard interface without its sockets: packets go in on one side and come out on the other. */
import { newExchange, type X25519Key, x25519Key } from '../x509/x25519.ts'
import { AllowedIps } from './allowed-ips.ts'
import { CookieChecker } from './cookie.ts'
import { sameBytes } from './crypto.ts'
import { initiate, receiveInitiation, receiveResponse, respond } from './handshake.ts'
import { cookieReplyAt, initiationAt, messageLength, messageType, readU32, responseAt, tagLength, transportAt, typeOf } from './message.ts'
import { ipPacketLength, paddedLength, sourceAt } from './packet.ts'
import { type Endpoint, Peer } from './peer.ts'
import type { MakeCipher, Session } from './session.ts'
import { Timestamps } from './timestamps.ts'

/** Room that a packet needs in front of it and behind it, in bytes: padding and tag. */
export const headroom = messageLength.transportHeader
export const tailroom = tagLength + 15

/** Handshake messages in one second from which their senders have to prove their addresses. */
const loadThreshold = 100

/** Where a device sends to. Buffers are valid only during the call. */
export interface Outlets {
  /** Sends `length` bytes at an offset of a buffer to a peer. */
  send(buffer: Uint8Array, at: number, length: number, to: Endpoint): void
  /** Hands a packet to the network stack; it lies in the buffer of its datagram. */
  deliver(buffer: Uint8Array, at: number, length: number): void
}

/** Sources of time, randomness and encryption. */
export interface Tools {
  /** Milliseconds of a clock that does not jump. */
  now(): number
  /** Milliseconds since 1970. */
  wallClock(): number
  randomIndex(): number
  cipher: MakeCipher
}

type Owner = { readonly peer: Peer; session: Session | undefined }

/** An interface with its peers. */
export class Device {
  readonly peers = new Map<string, Peer>()
  readonly #routes = new AllowedIps<Peer>()
  readonly #indexes = new Map<number, Owner>()
  #key: X25519Key = newExchange()
  #checker = new CookieChecker(this.#key.publicKey)
  readonly #timestamps = new Timestamps()
  #handshakes = 0
  #second = 0
  /** The MTU of the link, 0 while it is not known. */
  mtu = 0

  readonly #outlets: Outlets
  readonly #tools: Tools

  constructor(outlets: Outlets, tools: Tools) {
    this.#outlets = outlets
    this.#tools = tools
  }

  /** The public key, 32 bytes. */
  get publicKey(): Uint8Array {
    return this.#key.publicKey
  }

  /** Replaces the private key; all sessions end unless it is the same. */
  setPrivateKey(bytes: Uint8Array): void {
    const key = x25519Key(bytes)
    if (sameBytes(key.publicKey, this.#key.publicKey)) return
    this.#key = key
    this.#checker = new CookieChecker(this.#key.publicKey)
    for (const peer of this.peers.values()) peer.reset()
    this.removePeer(this.#key.publicKey)
  }

  /** The peer with a key, made if it is absent; undefined for the key of this device. */
  addPeer(publicKey: Uint8Array): Peer | undefined {
    const id = idOf(publicKey)
    const found = this.peers.get(id)
    if (found || Buffer.compare(publicKey, this.#key.publicKey) === 0) return found
    const peer = new Peer(publicKey, {
      initiate: (target, retry) => this.#initiate(target, retry),
      keepalive: (target) => this.#sendKeepalive(target),
      release: (index) => this.#indexes.delete(index),
    })
    this.peers.set(id, peer)
    return peer
  }

  /** Removes a peer and its sessions. */
  removePeer(publicKey: Uint8Array): void {
    const peer = this.peers.get(idOf(publicKey))
    if (!peer) return
    peer.reset()
    this.peers.delete(idOf(publicKey))
    this.routesChanged()
  }

  /** Sets where a peer is expected. Without a session, the handshake that waits for an answer from elsewhere is given up for one there. */
  movePeer(peer: Peer, endpoint: Endpoint): void {
    const moved = !peer.endpoint || Buffer.compare(peer.endpoint.socketAddress, endpoint.socketAddress) !== 0
    peer.endpoint = endpoint
    if (!moved || peer.current?.usable(this.#tools.now())) return
    peer.forgetAttempts()
    if (peer.persistentKeepalive > 0 || peer.staged.length > 0) this.#initiate(peer, false)
  }

  /** Builds the table of prefixes again, after those of a peer have changed. */
  routesChanged(): void {
    this.#routes.clear()
    for (const peer of this.peers.values()) for (const { address, bits } of peer.allowedIps) this.#routes.set(address, bits, peer)
  }

  /**
   * Sends a packet of the network stack that lies in a buffer with `headroom` before it and `tailroom` behind it. False when no peer has
   * its destination.
   */
  packet(buffer: Uint8Array, at: number, length: number): boolean {
    const source = sourceAt(buffer, at, length)
    if (!source) return false
    const peer = this.#routes.find(buffer, source.at + source.length, source.length)
    if (!peer) return false
    if (peer.current?.usable(this.#tools.now()) && peer.endpoint) this.#seal(peer, peer.current, buffer, at, length)
    else {
      peer.stage(new Uint8Array(buffer.subarray(at, at + length))) // a copy: slice() of a Buffer is a view
      this.#initiate(peer, false)
    }
    return true
  }

  /** Receives a datagram, which is decrypted in place. */
  datagram(datagram: Uint8Array, from: Endpoint): void {
    switch (typeOf(datagram)) {
      case messageType.transport:
        this.#transport(datagram, from)
        break
      case messageType.initiation:
        if (this.#admits(datagram, readU32(datagram, initiationAt.sender), from)) this.#initiation(datagram, from)
        break
      case messageType.response:
        if (this.#admits(datagram, readU32(datagram, responseAt.sender), from)) this.#response(datagram, from)
        break
      case messageType.cookieReply:
        this.#indexes.get(readU32(datagram, cookieReplyAt.receiver))?.peer.cookies.receive(datagram, this.#tools.now())
    }
  }

  /** Runs expired timers; returns the time of the next one. */
  tick(): number {
    const now = this.#tools.now()
    let next = Number.POSITIVE_INFINITY
    for (const peer of this.peers.values()) {
      peer.tick(now)
      next = Math.min(next, peer.nextTimer())
    }
    return next
  }

  /** Sends what waited for a session, or a keepalive, which confirms the session. */
  flush(peer: Peer): void {
    const { current, staged } = peer
    if (!current?.usable(this.#tools.now()) || !peer.endpoint) return
    for (const packet of staged.splice(0)) {
      const buffer = new Uint8Array(headroom + packet.length + tailroom)
      buffer.set(packet, headroom)
      this.#seal(peer, current, buffer, headroom, packet.length)
    }
  }

  #seal(peer: Peer, session: Session, buffer: Uint8Array, at: number, length: number): void {
    const now = this.#tools.now()
    const padded = paddedLength(length, this.mtu)
    buffer.fill(0, at + length, at + padded)
    const size = session.seal(buffer, at - headroom, padded)
    peer.sentBytes += size
    if (length > 0) peer.dataSent(now)
    peer.messageSent(now)
    if (peer.endpoint) this.#outlets.send(buffer, at - headroom, size, peer.endpoint)
    if (session.stale(now)) this.#initiate(peer, false)
  }

  #sendKeepalive(peer: Peer): void {
    if (peer.staged.length > 0) this.#initiate(peer, false)
    else if (peer.current?.usable(this.#tools.now()) && peer.endpoint)
      this.#seal(peer, peer.current, new Uint8Array(headroom + tailroom), headroom, 0)
    else this.#initiate(peer, false)
  }

  #initiate(peer: Peer, retry: boolean): void {
    const now = this.#tools.now()
    if (!peer.endpoint || !peer.mayInitiate(now, retry)) return
    peer.endInitiation()
    const index = this.#newIndex({ peer, session: undefined })
    const { message, state } = initiate(this.#key, peer, index, this.#timestamps.next(this.#tools.wallClock()))
    peer.initiation = state
    peer.initiated(now)
    this.#handshakeMessage(peer, message, now)
  }

  #handshakeMessage(peer: Peer, message: Uint8Array, now: number): void {
    if (!peer.endpoint) return
    peer.cookies.sign(message, now)
    peer.sentBytes += message.length
    peer.messageSent(now)
    this.#outlets.send(message, 0, message.length, peer.endpoint)
  }

  /** Whether a handshake message may cost computations. Under load, its sender has to prove its address by a cookie first. */
  #admits(message: Uint8Array, sender: number, from: Endpoint): boolean {
    const now = this.#tools.now()
    const state = this.#checker.check(message, from.socketAddress, now)
    if (state === 'wrong') return false
    const second = Math.floor(now / 1000)
    if (second !== this.#second) this.#handshakes = second === this.#second + 1 && this.#handshakes > loadThreshold ? loadThreshold : 0
    this.#second = second
    if (++this.#handshakes <= loadThreshold || state === 'mac2') return true
    const reply = this.#checker.reply(message, sender, from.socketAddress, now)
    this.#outlets.send(reply, 0, reply.length, from)
    return false
  }

  #initiation(message: Uint8Array, from: Endpoint): void {
    const received = receiveInitiation(this.#key, message, (publicKey) => this.peers.has(idOf(publicKey)))
    const peer = received && this.peers.get(idOf(received.publicKey))
    const now = this.#tools.now()
    if (!received || !peer?.acceptsInitiation(received.timestamp, now)) return
    const owner: Owner = { peer, session: undefined }
    const local = this.#newIndex(owner)
    const answer = respond(received, peer, local)
    if (!answer) {
      this.#indexes.delete(local)
      return
    }
    peer.endpoint = from
    peer.receivedBytes += message.length
    peer.messageReceived(now)
    owner.session = peer.addSession(answer.keys, this.#tools.cipher, { local, remote: received.remoteIndex }, false, now)
    this.#handshakeMessage(peer, answer.message, now)
  }

  #response(message: Uint8Array, from: Endpoint): void {
    const owner = this.#indexes.get(readU32(message, responseAt.receiver))
    const initiation = owner?.peer.initiation
    if (!owner || !initiation || initiation.localIndex !== readU32(message, responseAt.receiver)) return
    const { peer } = owner
    const keys = receiveResponse(this.#key, initiation, peer, message)
    if (!keys) return
    const now = this.#tools.now()
    peer.initiation = undefined // its index belongs to the session from here on
    peer.endpoint = from
    peer.receivedBytes += message.length
    peer.messageReceived(now)
    const indexes = { local: initiation.localIndex, remote: readU32(message, responseAt.sender) }
    owner.session = peer.addSession(keys, this.#tools.cipher, indexes, true, now)
    peer.completed(this.#tools.wallClock())
    if (peer.staged.length > 0) this.flush(peer)
    else this.#sendKeepalive(peer)
  }

  #transport(message: Uint8Array, from: Endpoint): void {
    const owner = this.#indexes.get(readU32(message, transportAt.receiver))
    if (!owner?.session) return
    const { peer, session } = owner
    const now = this.#tools.now()
    const length = session.open(message, now)
    if (length === undefined) return
    if (peer.confirm(session)) {
      peer.completed(this.#tools.wallClock())
      this.flush(peer)
    }
    peer.endpoint = from
    peer.receivedBytes += message.length
    peer.messageReceived(now)
    peer.refresh(now)
    if (length === 0) return
    peer.dataReceived(now)
    const packetLength = ipPacketLength(message, headroom, length)
    const source = packetLength === undefined ? undefined : sourceAt(message, headroom, length)
    if (packetLength === undefined || !source || this.#routes.find(message, source.at, source.length) !== peer) return
    this.#outlets.deliver(message, headroom, packetLength)
  }

  #newIndex(owner: Owner): number {
    for (;;) {
      const index = this.#tools.randomIndex() >>> 0
      if (this.#indexes.has(index)) continue
      this.#indexes.set(index, owner)
      return index
    }
  }
}

const idOf = (publicKey: Uint8Array): string => Buffer.from(publicKey).toString('base64')
