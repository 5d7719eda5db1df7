/** Sessions: the keys that a handshake gave, their counters and their ages (WireGuard, sections 5.4.6 and 6). */
import type { TransportKeys } from './handshake.ts'
import { messageType, readCounter, tagLength, transportAt, writeCounter, writeU32 } from './message.ts'
import { ReplayWindow } from './replay.ts'

/** Milliseconds after which a session's initiator starts a new handshake. */
export const rekeyAfter = 120_000
/** Milliseconds after which a session is not used any more. */
export const rejectAfter = 180_000
/** Messages after which a new handshake starts, and after which none is sent. Counters are below 2^53. */
export const rekeyAfterMessages = 2 ** 52
export const rejectAfterMessages = 2 ** 53 - 2 ** 13 - 1

/** ChaCha20-Poly1305 with one key, in place, with the counter of WireGuard as its nonce. */
export interface TransportCipher {
  /** Encrypts `length` bytes at an offset and writes the tag behind them. */
  seal(counter: number, buffer: Uint8Array, at: number, length: number): void
  /** Decrypts `length` bytes, of which the last 16 are the tag; false when they are not authentic. */
  open(counter: number, buffer: Uint8Array, at: number, length: number): boolean
  close(): void
}

/** Makes the cipher of a key of 32 bytes. */
export type MakeCipher = (key: Uint8Array) => TransportCipher

/** One session. */
export class Session {
  readonly #send: TransportCipher
  readonly #receive: TransportCipher
  readonly #window = new ReplayWindow()
  #counter = 0

  constructor(
    keys: TransportKeys,
    cipher: MakeCipher,
    readonly localIndex: number,
    readonly remoteIndex: number,
    readonly initiator: boolean,
    /** When it was made, in milliseconds. */
    readonly since: number,
  ) {
    this.#send = cipher(keys.send)
    this.#receive = cipher(keys.receive)
  }

  /** Whether packets may be sent with it. */
  usable(now: number): boolean {
    return now - this.since < rejectAfter && this.#counter < rejectAfterMessages
  }

  /** Whether its sender should start a handshake. */
  stale(now: number): boolean {
    return this.#counter > rekeyAfterMessages || (this.initiator && now - this.since >= rekeyAfter)
  }

  /**
   * Makes a transport message in place: `length` bytes of payload lie behind room for the header at `at`, followed by room for the tag.
   * Returns the length of the message.
   */
  seal(buffer: Uint8Array, at: number, length: number): number {
    const counter = this.#counter++
    buffer[at] = messageType.transport
    buffer[at + 1] = 0
    buffer[at + 2] = 0
    buffer[at + 3] = 0
    writeU32(buffer, at + transportAt.receiver, this.remoteIndex)
    writeCounter(buffer, at + transportAt.counter, counter)
    this.#send.seal(counter, buffer, at + transportAt.payload, length)
    return transportAt.payload + length + tagLength
  }

  /** Opens a transport message in place; returns the length of its payload, undefined when it is expired, replayed or not authentic. */
  open(message: Uint8Array, now: number): number | undefined {
    const counter = readCounter(message, transportAt.counter)
    if (now - this.since >= rejectAfter || counter >= rejectAfterMessages) return undefined
    if (!this.#receive.open(counter, message, transportAt.payload, message.length - transportAt.payload)) return undefined
    return this.#window.accept(counter) ? message.length - transportAt.payload - tagLength : undefined
  }

  /** Frees its keys. */
  close(): void {
    this.#send.close()
    this.#receive.close()
  }
}
