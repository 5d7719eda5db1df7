/**
 * The alert by which a TLS 1.3 server states why it refuses a client certificate. The runtime verifies certificates after the
 * handshake and then closes without an alert, so that a client sees a reset instead of the reason. Therefore the first
 * record under the traffic keys is built here. RFC 8446, sections 5.2, 6 and 7.1.
 */
import { createCipheriv, createHmac } from 'node:crypto'

/** Descriptions of alerts. RFC 8446, section 6. */
export const alert = {
  badCertificate: 42,
  certificateExpired: 45,
  unknownAuthority: 48,
  certificateRequired: 116,
} as const

/** The runtime offers no ChaCha20-Poly1305 here. */
const suites: Record<string, { cipher: 'aes-128-gcm' | 'aes-256-gcm'; hash: string; key: number }> = {
  TLS_AES_128_GCM_SHA256: { cipher: 'aes-128-gcm', hash: 'sha256', key: 16 },
  TLS_AES_256_GCM_SHA384: { cipher: 'aes-256-gcm', hash: 'sha384', key: 32 },
}

const label = 'SERVER_TRAFFIC_SECRET_0'

/** The server's first traffic secret in a line of the key log; undefined for other secrets. */
export function trafficSecret(line: string): Buffer | undefined {
  const [name, , secret] = line.trim().split(' ')
  return name === label && secret !== undefined ? Buffer.from(secret, 'hex') : undefined
}

/** The record of a fatal alert as the server's first record; undefined for an unsupported cipher suite. */
export function firstAlert(secret: Buffer, suite: string, description: number): Buffer | undefined {
  const found = suites[suite]
  if (!found) return undefined
  const { cipher, hash, key } = found
  // The content, then its type (alert), without padding.
  const inner = Buffer.from([2, description, 21])
  const header = Buffer.from([23, 3, 3, 0, inner.length + 16])
  // The sequence number, which is mixed into the nonce, is 0.
  const sealing = createCipheriv(cipher, expand(hash, secret, 'key', key), expand(hash, secret, 'iv', 12))
  sealing.setAAD(header)
  const sealed = Buffer.concat([sealing.update(inner), sealing.final()])
  return Buffer.concat([header, sealed, sealing.getAuthTag()])
}

/** HKDF-Expand-Label without a context, for at most one block. */
function expand(hash: string, secret: Buffer, name: string, length: number): Buffer {
  const full = Buffer.from(`tls13 ${name}`)
  const info = Buffer.concat([Buffer.from([0, length, full.length]), full, Buffer.from([0, 1])])
  return createHmac(hash, secret).update(info).digest().subarray(0, length)
}
