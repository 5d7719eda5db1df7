/** Keys of the age format (https://age-encryption.org/v1): recipients encrypt, identities decrypt. */
import { createPrivateKey, createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { DecodeError } from '../decode-error.ts'
import { decodeBech32, encodeBech32 } from './bech32.ts'

const recipientPrefix = 'age'
const identityPrefix = 'age-secret-key-'
const keyLength = 32
/** PKCS #8 of an X25519 key (RFC 8410, section 7) up to its bytes. */
const pkcs8 = Buffer.from('302e020100300506032b656e04220420', 'hex')

/** The 32 bytes of a recipient, `age1…`. Throws DecodeError. */
export const parseRecipient = (text: string): Uint8Array => ofLength(decodeBech32(recipientPrefix, text))

/** The 32 bytes of an identity, `AGE-SECRET-KEY-1…`. Throws DecodeError. */
export const parseIdentity = (text: string): Uint8Array => ofLength(decodeBech32(identityPrefix, text))

/** The recipient of an identity's bytes, as text. */
export const recipientOf = (identity: Uint8Array): string => encodeBech32(recipientPrefix, publicKeyOf(identity))

/** A new identity, as text. */
export function newIdentity(): string {
  const { privateKey } = generateKeyPairSync('x25519')
  return encodeBech32(identityPrefix, privateKey.export({ type: 'pkcs8', format: 'der' }).subarray(-keyLength)).toUpperCase()
}

/** The identities in the text of an identity file: one a line, with comments and empty lines. Throws DecodeError. */
export function parseIdentityFile(text: string): Uint8Array[] {
  const lines = text.split(/\r?\n/).map((line) => line.trim())
  const identities = lines.filter((line) => line !== '' && !line.startsWith('#')).map(parseIdentity)
  if (identities.length === 0) throw new DecodeError('identity file', 0, 'there is no identity (AGE-SECRET-KEY-1…) in it')
  return identities
}

/** The X25519 public key of a private one. */
export function publicKeyOf(identity: Uint8Array): Uint8Array {
  return rawOf(createPublicKey(privateKeyOf(identity)))
}

/** A new pair for one exchange: the public key, and the secrets it shares with others. */
export function newExchange(): { share: Uint8Array; secretWith(recipient: Uint8Array): Uint8Array } {
  const { privateKey, publicKey } = generateKeyPairSync('x25519')
  return { share: rawOf(publicKey), secretWith: (recipient) => exchange(privateKey, recipient) }
}

/** The secret that an identity shares with a public key. Throws for a key of low order. */
export const sharedSecret = (identity: Uint8Array, share: Uint8Array): Uint8Array => exchange(privateKeyOf(identity), share)

function exchange(privateKey: KeyObject, raw: Uint8Array): Uint8Array {
  const x = Buffer.from(raw).toString('base64url')
  return diffieHellman({ privateKey, publicKey: createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'X25519', x } }) })
}

const privateKeyOf = (identity: Uint8Array) => createPrivateKey({ key: Buffer.concat([pkcs8, identity]), format: 'der', type: 'pkcs8' })
const rawOf = (key: KeyObject): Uint8Array => Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url')

function ofLength(bytes: Uint8Array): Uint8Array {
  if (bytes.length !== keyLength) throw new DecodeError('age key', 0, `${bytes.length} bytes, expected ${keyLength}`)
  return bytes
}
