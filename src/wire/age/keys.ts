/** Keys of the age format (https://age-encryption.org/v1): recipients encrypt, identities decrypt. */
import { DecodeError } from '../decode-error.ts'
import { newPrivateKey, publicKeyOf, x25519Length } from '../x509/x25519.ts'
import { decodeBech32, encodeBech32 } from './bech32.ts'

const recipientPrefix = 'age'
const identityPrefix = 'age-secret-key-'

/** The 32 bytes of a recipient, `age1…`. Throws DecodeError. */
export const parseRecipient = (text: string): Uint8Array => ofLength(decodeBech32(recipientPrefix, text))

/** The 32 bytes of an identity, `AGE-SECRET-KEY-1…`. Throws DecodeError. */
export const parseIdentity = (text: string): Uint8Array => ofLength(decodeBech32(identityPrefix, text))

/** The recipient of an identity's bytes, as text. */
export const recipientOf = (identity: Uint8Array): string => encodeBech32(recipientPrefix, publicKeyOf(identity))

/** A new identity, as text. */
export const newIdentity = (): string => encodeBech32(identityPrefix, newPrivateKey()).toUpperCase()

/** The identities in the text of an identity file: one a line, with comments and empty lines. Throws DecodeError. */
export function parseIdentityFile(text: string): Uint8Array[] {
  const lines = text.split(/\r?\n/).map((line) => line.trim())
  const identities = lines.filter((line) => line !== '' && !line.startsWith('#')).map(parseIdentity)
  if (identities.length === 0) throw new DecodeError('identity file', 0, 'there is no identity (AGE-SECRET-KEY-1…) in it')
  return identities
}

function ofLength(bytes: Uint8Array): Uint8Array {
  if (bytes.length !== x25519Length) throw new DecodeError('age key', 0, `${bytes.length} bytes, expected ${x25519Length}`)
  return bytes
}
