/**
 * What the node sends to the discovery service: ciphertext under the cluster's key, so that the service can match and distribute
 * but not read it. Data is AES-256-GCM, preceded by its nonce. Endpoints are AES-256-ECB, so that equal endpoints seen by several
 * nodes give equal bytes.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/** A record of the discovery service that cannot be decrypted with the cluster's key. */
export class SealError extends Error {
  override name = 'SealError'
}

const nonceLength = 12
const tagLength = 16

/** Nonce, ciphertext, tag. */
export function seal(key: Uint8Array, data: Uint8Array): Buffer {
  const nonce = randomBytes(nonceLength)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  return Buffer.concat([nonce, cipher.update(data), cipher.final(), cipher.getAuthTag()])
}

/** Decrypts what `seal` produced; throws SealError when it was made with another key or changed. */
export function unseal(key: Uint8Array, sealed: Uint8Array): Buffer {
  if (sealed.length < nonceLength + tagLength) throw new SealError('open affiliate: the record is too short')
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, nonceLength))
  decipher.setAuthTag(sealed.subarray(sealed.length - tagLength))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(nonceLength, sealed.length - tagLength)), decipher.final()])
  } catch {
    throw new SealError('open affiliate: the record was not made with the key of this cluster')
  }
}

const blockLength = 16

/** An endpoint's bytes preceded by their length, padded to whole blocks: equal ones give equal bytes under one key. */
export function sealEndpoint(key: Uint8Array, endpoint: Uint8Array): Buffer {
  if (endpoint.length > 255) throw new RangeError(`an endpoint of ${endpoint.length} bytes is too long`)
  const padded = Buffer.alloc(Math.ceil((1 + endpoint.length) / blockLength) * blockLength)
  padded[0] = endpoint.length
  padded.set(endpoint, 1)
  const cipher = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false)
  return Buffer.concat([cipher.update(padded), cipher.final()])
}

/** Decrypts what `sealEndpoint` produced; throws SealError when it is invalid. */
export function unsealEndpoint(key: Uint8Array, sealed: Uint8Array): Buffer {
  if (sealed.length === 0 || sealed.length % blockLength !== 0) throw new SealError('open endpoint: it is not of whole blocks')
  const decipher = createDecipheriv('aes-256-ecb', key, null).setAutoPadding(false)
  const padded = Buffer.concat([decipher.update(sealed), decipher.final()])
  const length = padded[0] ?? 0
  if (length > padded.length - 1 || padded.subarray(1 + length).some((byte) => byte !== 0))
    throw new SealError('open endpoint: it was not made with the key of this cluster')
  return padded.subarray(1, 1 + length)
}
