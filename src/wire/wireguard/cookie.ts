/** The macs of handshake messages, and cookies: proof of an address before anything costly is computed (WireGuard, sections 5.4.4, 5.4.7). */
import { randomBytes } from 'node:crypto'
import { cookieKey, mac, mac1Key, openCookie, sameBytes, sealCookie } from './crypto.ts'
import { cookieReplyAt, macLength, messageLength, messageType, writeU32 } from './message.ts'

/** Milliseconds: how long a cookie, and the secret it is made of, is used. */
const cookieLifetime = 120_000

/** What `checkMacs` found. */
export type MacState = 'wrong' | 'mac1' | 'mac2'

/** Checks macs of messages that are received, and answers with cookies. */
export class CookieChecker {
  readonly #mac1Key: Uint8Array
  readonly #cookieKey: Uint8Array
  #secret: Uint8Array = new Uint8Array()
  #secretSince = Number.NEGATIVE_INFINITY

  constructor(publicKey: Uint8Array) {
    this.#mac1Key = mac1Key(publicKey)
    this.#cookieKey = cookieKey(publicKey)
  }

  /** Checks mac1, and mac2 against the cookie of a source address (the address and port as bytes); `now` in milliseconds. */
  check(message: Uint8Array, source: Uint8Array, now: number): MacState {
    const mac1At = message.length - 2 * macLength
    const mac2At = message.length - macLength
    if (!sameBytes(mac(this.#mac1Key, message.subarray(0, mac1At)), message.subarray(mac1At, mac2At))) return 'wrong'
    const mac2 = message.subarray(mac2At)
    if (mac2.every((byte) => byte === 0)) return 'mac1'
    return sameBytes(mac(this.#cookieOf(source, now), message.subarray(0, mac2At)), mac2) ? 'mac2' : 'mac1'
  }

  /** A cookie reply to a message, whose sender's index is `receiver`. */
  reply(message: Uint8Array, receiver: number, source: Uint8Array, now: number): Uint8Array {
    const reply = new Uint8Array(messageLength.cookieReply)
    reply[0] = messageType.cookieReply
    writeU32(reply, cookieReplyAt.receiver, receiver)
    const nonce = randomBytes(cookieReplyAt.cookie - cookieReplyAt.nonce)
    const mac1 = message.subarray(message.length - 2 * macLength, message.length - macLength)
    reply.set(nonce, cookieReplyAt.nonce)
    reply.set(sealCookie(this.#cookieKey, nonce, this.#cookieOf(source, now), mac1), cookieReplyAt.cookie)
    return reply
  }

  #cookieOf(source: Uint8Array, now: number): Uint8Array {
    if (now - this.#secretSince >= cookieLifetime) {
      this.#secret = randomBytes(32)
      this.#secretSince = now
    }
    return mac(this.#secret, source)
  }
}

/** Adds macs to messages for one peer, with the cookie that the peer demanded. */
export class CookieJar {
  readonly #mac1Key: Uint8Array
  readonly #cookieKey: Uint8Array
  #lastMac1: Uint8Array | undefined
  #cookie: Uint8Array | undefined
  #received = 0

  constructor(publicKey: Uint8Array) {
    this.#mac1Key = mac1Key(publicKey)
    this.#cookieKey = cookieKey(publicKey)
  }

  /** Writes both macs; mac2 stays zero without a cookie. */
  sign(message: Uint8Array, now: number): void {
    const mac1At = message.length - 2 * macLength
    const mac2At = message.length - macLength
    this.#lastMac1 = mac(this.#mac1Key, message.subarray(0, mac1At))
    message.set(this.#lastMac1, mac1At)
    // A cookie is dropped a little early, for what is on its way.
    if (this.#cookie && now - this.#received < cookieLifetime - 5000) message.set(mac(this.#cookie, message.subarray(0, mac2At)), mac2At)
  }

  /** Keeps the cookie of a reply to the last message; ignores any other reply. */
  receive(reply: Uint8Array, now: number): void {
    if (!this.#lastMac1) return
    const nonce = reply.subarray(cookieReplyAt.nonce, cookieReplyAt.cookie)
    const cookie = openCookie(this.#cookieKey, nonce, reply.subarray(cookieReplyAt.cookie), this.#lastMac1)
    if (!cookie) return
    this.#cookie = cookie
    this.#received = now
    this.#lastMac1 = undefined
  }
}
