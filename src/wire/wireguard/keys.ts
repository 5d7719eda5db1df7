/** WireGuard keys as text: base64 of the 32 bytes of an X25519 key. */
import * as x25519 from '../x509/x25519.ts'

/** The bytes of a key. Throws RangeError for an invalid one. */
export function keyBytes(key: string): Uint8Array {
  const bytes = Buffer.from(key, 'base64')
  if (bytes.length !== x25519.x25519Length) throw new RangeError('a WireGuard key is base64 of 32 bytes')
  return bytes
}

/** The text of a key; '' for no key, or for one of zeros, which stands for none. */
export const keyText = (bytes: Uint8Array | undefined): string => (bytes?.some((byte) => byte !== 0) ? base64(bytes) : '')

/** Generates a private key. */
export const newPrivateKey = (): string => base64(x25519.newPrivateKey())

/** The public key of a private key. Throws RangeError for an invalid key. */
export const publicKeyOf = (privateKey: string): string => base64(x25519.publicKeyOf(keyBytes(privateKey)))

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')
