/** Key derivation of TPM 2.0 (part 1, 11.4.10), with SHA-256. */
import { createHash, createHmac } from 'node:crypto'
import { joined, u32 } from './buffer.ts'

/** SHA-256 of buffers one after another. */
export const sha256 = (...parts: readonly Uint8Array[]): Uint8Array =>
  new Uint8Array(
    createHash('sha256')
      .update(joined(...parts))
      .digest(),
  )

/** HMAC-SHA-256 of buffers one after another. */
export const hmacSha256 = (key: Uint8Array, ...parts: readonly Uint8Array[]): Uint8Array =>
  new Uint8Array(
    createHmac('sha256', key)
      .update(joined(...parts))
      .digest(),
  )

/** A label with the NUL that ends it. */
const labelled = (label: string): Uint8Array => Buffer.from(`${label}\0`, 'latin1')

/** Derives up to 32 bytes from a key and two contexts (SP 800-108 in counter mode). */
export const kdfA = (key: Uint8Array, label: string, u: Uint8Array, v: Uint8Array, length: number): Uint8Array =>
  hmacSha256(key, u32(1), labelled(label), u, v, u32(length * 8)).subarray(0, length)

/** Derives 32 bytes from the x coordinate of a shared point and those of both parties' keys (SP 800-56A). */
export const kdfE = (z: Uint8Array, label: string, partyU: Uint8Array, partyV: Uint8Array): Uint8Array =>
  sha256(u32(1), z, labelled(label), partyU, partyV)
