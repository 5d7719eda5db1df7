/** X25519 (RFC 7748): keys and secrets are 32 bytes. */
import { createPrivateKey, createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject } from 'node:crypto'

/** Length of a key or a shared secret in bytes. */
export const x25519Length = 32
/** PKCS #8 and SubjectPublicKeyInfo of an X25519 key (RFC 8410, sections 7 and 4) up to its bytes. */
const pkcs8 = Buffer.from('302e020100300506032b656e04220420', 'hex')
const spki = Buffer.from('302a300506032b656e032100', 'hex')

/** A private key whose parsed form is kept for many exchanges. */
export interface X25519Key {
  readonly publicKey: Uint8Array
  /** Throws for a public key of low order. */
  secretWith(publicKey: Uint8Array): Uint8Array
}

/** Generates a private key. */
export const newPrivateKey = (): Uint8Array =>
  generateKeyPairSync('x25519').privateKey.export({ type: 'pkcs8', format: 'der' }).subarray(-x25519Length)

/** The public key of a private one. */
export const publicKeyOf = (privateKey: Uint8Array): Uint8Array => rawOf(createPublicKey(privateKeyOf(privateKey)))

/** A private key from its bytes. */
export function x25519Key(bytes: Uint8Array): X25519Key {
  const key = privateKeyOf(bytes)
  return { publicKey: rawOf(createPublicKey(key)), secretWith: (publicKey) => exchange(key, publicKey) }
}

/** A new private key, for one exchange. */
export function newExchange(): X25519Key {
  const { privateKey, publicKey } = generateKeyPairSync('x25519')
  return { publicKey: rawOf(publicKey), secretWith: (recipient) => exchange(privateKey, recipient) }
}

/** The secret that a private key shares with a public key. Throws for a public key of low order. */
export const sharedSecret = (privateKey: Uint8Array, publicKey: Uint8Array): Uint8Array => exchange(privateKeyOf(privateKey), publicKey)

const exchange = (privateKey: KeyObject, raw: Uint8Array): Uint8Array =>
  diffieHellman({ privateKey, publicKey: createPublicKey({ key: Buffer.concat([spki, raw]), format: 'der', type: 'spki' }) })

const privateKeyOf = (bytes: Uint8Array) => createPrivateKey({ key: Buffer.concat([pkcs8, bytes]), format: 'der', type: 'pkcs8' })
const rawOf = (key: KeyObject): Uint8Array => key.export({ format: 'der', type: 'spki' }).subarray(-x25519Length)
