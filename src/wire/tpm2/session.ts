/**
 * Sessions (TPM 2.0 part 1, 19): both sides know a key, derived from a salt that is encrypted to the storage root key. Every
 * command and response carries an HMAC with it, and the first parameter can be encrypted, so who sits on the bus between
 * processor and chip neither reads nor changes them.
 */
import { createCipheriv, createDecipheriv, createECDH, randomBytes, timingSafeEqual } from 'node:crypto'
import { joined, sized, TpmReader, u8, u16, u32 } from './buffer.ts'
import { algorithms, type CommandName, commandCodes, permanent, sessionAttributes, sessionTypes } from './constants.ts'
import { hmacSha256, kdfA, kdfE, sha256 } from './kdf.ts'
import type { Acknowledgement, Authorization } from './message.ts'
import { type EccPoint, writePoint } from './public-area.ts'

const nonceSize = 32
const keySize = 16

/** The TPM's side of a session does not have its key: something between sits and changes what is sent. */
export class SessionError extends Error {
  override readonly name = 'SessionError'
}

/** The secret of a session and the form in which only the TPM can read it. */
export interface Salt {
  readonly secret: Uint8Array
  readonly encrypted: Uint8Array
}

/** Makes a salt for the holder of a storage root key (part 1, C.6.1: one pass of Diffie-Hellman). */
export function saltFor(key: EccPoint): Salt {
  const ephemeral = createECDH('prime256v1')
  const own = ephemeral.generateKeys()
  const point = { x: new Uint8Array(own.subarray(1, 33)), y: new Uint8Array(own.subarray(33, 65)) }
  const shared = ephemeral.computeSecret(joined(u8(4), key.x, key.y))
  return { secret: kdfE(shared, 'SECRET', point.x, key.x), encrypted: writePoint(point) }
}

/** The parameters of StartAuthSession: salt, kind, cipher of parameters and hash. */
export function sessionRequest(kind: keyof typeof sessionTypes, salt: Salt): { nonce: Uint8Array; parameters: Uint8Array } {
  const nonce = new Uint8Array(randomBytes(nonceSize))
  const cipher = joined(u16(algorithms.aes), u16(keySize * 8), u16(algorithms.cfb))
  return {
    nonce,
    parameters: joined(sized(nonce), sized(salt.encrypted), u8(sessionTypes[kind]), cipher, u16(algorithms.sha256)),
  }
}

/** What a command is about, for its HMAC. */
export interface Subject {
  readonly command: CommandName
  /** Names of its handles. */
  readonly names: readonly Uint8Array[]
}

/** A session with a salt. Authorization values of objects are empty here, so none take part in its keys. */
export class Session {
  readonly handle: number
  readonly #key: Uint8Array
  #ownNonce: Uint8Array
  #tpmNonce: Uint8Array

  constructor(handle: number, salt: Salt, ownNonce: Uint8Array, tpmNonce: Uint8Array) {
    this.handle = handle
    this.#key = kdfA(salt.secret, 'ATH', tpmNonce, ownNonce, 32)
    this.#ownNonce = ownNonce
    this.#tpmNonce = tpmNonce
  }

  /** Encrypts what `encrypts` requests and authorizes the command. */
  protect(subject: Subject, parameters: Uint8Array, encrypts: 'parameter' | 'response'): { parameters: Uint8Array; by: Authorization } {
    this.#ownNonce = new Uint8Array(randomBytes(nonceSize))
    const attributes =
      sessionAttributes.continueSession | (encrypts === 'parameter' ? sessionAttributes.decrypt : sessionAttributes.encrypt)
    const sent = encrypts === 'parameter' ? this.#crypt('encrypt', parameters) : parameters
    const digest = sha256(u32(commandCodes[subject.command]), ...subject.names, sent)
    const hmac = hmacSha256(this.#key, digest, this.#ownNonce, this.#tpmNonce, u8(attributes))
    return { parameters: sent, by: { session: this.handle, nonce: this.#ownNonce, attributes, hmac } }
  }

  /** Checks a response and decrypts its first parameter where the TPM encrypted it. Throws SessionError. */
  accept(command: CommandName, parameters: Uint8Array, { nonce, attributes, hmac }: Acknowledgement): Uint8Array {
    this.#tpmNonce = nonce
    const digest = sha256(u32(0), u32(commandCodes[command]), parameters)
    const expected = hmacSha256(this.#key, digest, nonce, this.#ownNonce, u8(attributes))
    if (hmac.length !== expected.length || !timingSafeEqual(hmac, expected))
      throw new SessionError(`TPM ${command}: the response was changed on its way from the TPM`)
    return (attributes & sessionAttributes.encrypt) === 0 ? parameters : this.#crypt('decrypt', parameters)
  }

  /** Encrypts or decrypts the first parameter, which has its length in front, by AES-128 in CFB mode. */
  #crypt(direction: 'encrypt' | 'decrypt', parameters: Uint8Array): Uint8Array {
    const reader = new TpmReader(parameters, 'TPM parameter')
    const first = reader.sized()
    const nonces = direction === 'encrypt' ? ([this.#ownNonce, this.#tpmNonce] as const) : ([this.#tpmNonce, this.#ownNonce] as const)
    const material = kdfA(this.#key, 'CFB', ...nonces, 2 * keySize)
    const make = direction === 'encrypt' ? createCipheriv : createDecipheriv
    const cipher = make('aes-128-cfb', material.subarray(0, keySize), material.subarray(keySize))
    return joined(sized(joined(cipher.update(first), cipher.final())), reader.rest())
  }
}

/** The handles of StartAuthSession: the key of the salt, and no object that the session is bound to. */
export const sessionHandles = (saltKey: number): number[] => [saltKey, permanent.null]
