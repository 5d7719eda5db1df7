/**
 * What leaves the node for the discovery service: ciphertext under the cluster's key, so that the service can match and
 * hand out but not read. Data is AES-256-GCM with its nonce before it; endpoints are AES-256-ECB, so that equal endpoints
 * seen by several nodes give equal bytes.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/** A record of the discovery service that does not open under the cluster's key. */
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

/** Opens what `seal` closed; throws SealError when it was made with another key or changed. */
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

/** An endpoint's bytes with their length before them, filled to whole blocks: equal ones give equal bytes under one key. */
export function sealEndpoint(key: Uint8Array, endpoint: Uint8Array): Buffer {
  if (endpoint.length > 255) throw new RangeError(`an endpoint of ${endpoint.length} bytes is too long`)
  const padded = Buffer.alloc(Math.ceil((1 + endpoint.length) / blockLength) * blockLength)
  padded[0] = endpoint.length
  padded.set(endpoint, 1)
  const cipher = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false)
  return Buffer.concat([cipher.update(padded), cipher.final()])
}

/** Opens what `sealEndpoint` closed; throws SealError when it cannot be such. */
export function unsealEndpoint(key: Uint8Array, sealed: Uint8Array): Buffer {
  if (sealed.length === 0 || sealed.length % blockLength !== 0) throw new SealError('open endpoint: it is not of whole blocks')
  const decipher = createDecipheriv('aes-256-ecb', key, null).setAutoPadding(false)
  const padded = Buffer.concat([decipher.update(sealed), decipher.final()])
  const length = padded[0] ?? 0
  if (length > padded.length - 1 || padded.subarray(1 + length).some((byte) => byte !== 0))
    throw new SealError('open endpoint: it was not made with the key of this cluster')
  return padded.subarray(1, 1 + length)
}
