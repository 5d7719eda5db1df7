/** WireGuard keys: Curve25519 (RFC 7748), base64 of 32 bytes. */
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'

const pkcs8Head = Buffer.from('302e020100300506032b656e04220420', 'hex') // RFC 8410: header of an X25519 key

/** Generates a private key. */
export function newPrivateKey(): string {
  const { privateKey } = generateKeyPairSync('x25519')
  return privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32).toString('base64')
}

/** The public key of a private key. Throws RangeError for an invalid key. */
export function publicKeyOf(privateKey: string): string {
  const bytes = Buffer.from(privateKey, 'base64')
  if (bytes.length !== 32) throw new RangeError('a WireGuard key is base64 of 32 bytes')
  const key = createPrivateKey({ key: Buffer.concat([pkcs8Head, bytes]), format: 'der', type: 'pkcs8' })
  return createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64')
}
