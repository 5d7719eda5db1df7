/** The functions of WireGuard's handshake: Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s (Noise Protocol Framework; WireGuard, section 5.4). */
import { chacha20poly1305, xchacha20poly1305 } from '@noble/ciphers/chacha.js'
import { blake2s } from '@noble/hashes/blake2.js'
import { hmac } from '@noble/hashes/hmac.js'

/** BLAKE2s of the concatenated parts, 32 bytes. */
export function hash(...parts: readonly Uint8Array[]): Uint8Array {
  const state = blake2s.create({})
  for (const part of parts) state.update(part)
  return state.digest()
}

/** Keyed BLAKE2s of 16 bytes. */
export const mac = (key: Uint8Array, message: Uint8Array): Uint8Array => blake2s(message, { key, dkLen: 16 })

/** HKDF with HMAC-BLAKE2s: as many keys of 32 bytes as requested. */
export function kdf<const N extends 1 | 2 | 3>(count: N, key: Uint8Array, input: Uint8Array): Uint8Array[] & { length: N } {
  const secret = hmac(blake2s, key, input)
  const keys: Uint8Array[] = []
  let previous: Uint8Array = new Uint8Array()
  for (let index = 1; index <= count; index++) {
    previous = hmac(blake2s, secret, Buffer.concat([previous, Uint8Array.of(index)]))
    keys.push(previous)
  }
  return keys as Uint8Array[] & { length: N }
}

const firstNonce = new Uint8Array(12)

/** ChaCha20-Poly1305 with nonce 0: every key of the handshake seals one message. */
export const seal = (key: Uint8Array, plain: Uint8Array, associated: Uint8Array): Uint8Array =>
  chacha20poly1305(key, firstNonce, associated).encrypt(plain)

/** Opens what `seal` sealed; undefined when it was not sealed with this key and associated data. */
export const open = (key: Uint8Array, sealed: Uint8Array, associated: Uint8Array): Uint8Array | undefined =>
  authentic(() => chacha20poly1305(key, firstNonce, associated).decrypt(sealed))

/** XChaCha20-Poly1305 with a random nonce of 24 bytes, for cookies. */
export const sealCookie = (key: Uint8Array, nonce: Uint8Array, plain: Uint8Array, associated: Uint8Array): Uint8Array =>
  xchacha20poly1305(key, nonce, associated).encrypt(plain)

/** Opens a sealed cookie; undefined when it is not authentic. */
export const openCookie = (key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array, associated: Uint8Array): Uint8Array | undefined =>
  authentic(() => xchacha20poly1305(key, nonce, associated).decrypt(sealed))

function authentic(decrypt: () => Uint8Array): Uint8Array | undefined {
  try {
    return decrypt()
  } catch {
    return undefined // the library throws a plain Error for a wrong tag, the only fault that lengths checked before leave
  }
}

const text = (value: string) => new TextEncoder().encode(value)

/** Chaining key and hash at the start of every handshake. */
export const initialChainingKey = hash(text('Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s'))
export const initialHash = hash(initialChainingKey, text('WireGuard v1 zx2c4 Jason@zx2c4.com'))

/** The key of mac1 for messages to the owner of a public key, and the key that seals the owner's cookies. */
export const mac1Key = (publicKey: Uint8Array): Uint8Array => hash(text('mac1----'), publicKey)
export const cookieKey = (publicKey: Uint8Array): Uint8Array => hash(text('cookie--'), publicKey)

/** Compares two values of equal length in constant time. */
export function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false
  let difference = 0
  for (let index = 0; index < one.length; index++) difference |= (one[index] ?? 0) ^ (other[index] ?? 0)
  return difference === 0
}
