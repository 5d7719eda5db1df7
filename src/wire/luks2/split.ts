/**
 * The anti-forensic splitter of LUKS: a key is spread over thousands of stripes, all of which are needed to restore it, so that a
 * few overwritten sectors destroy it (LUKS On-Disk Format 1.2.3, 2.4).
 */
import { hash, randomBytes } from 'node:crypto'

/** Hash functions of the splitter, with the length of their results in bytes. */
export const splitHashes = { sha256: 32, sha512: 64 } as const

/** A hash function of the splitter. */
export type SplitHash = keyof typeof splitHashes

/** Spreads a key over stripes of its own length. */
export function split(key: Uint8Array, stripes: number, algorithm: SplitHash): Uint8Array {
  const { length } = key
  const spread = new Uint8Array(length * stripes)
  spread.set(randomBytes(length * (stripes - 1)))
  const mixed = mix(spread, length, stripes, algorithm)
  spread.set(
    key.map((byte, index) => byte ^ (mixed[index] ?? 0)),
    length * (stripes - 1),
  )
  return spread
}

/** Restores a key of `length` bytes. */
export function merge(spread: Uint8Array, length: number, stripes: number, algorithm: SplitHash): Uint8Array {
  const mixed = mix(spread, length, stripes, algorithm)
  return spread.subarray(length * (stripes - 1), length * stripes).map((byte, index) => byte ^ (mixed[index] ?? 0))
}

/** The diffused sum of all stripes except the last. */
function mix(spread: Uint8Array, length: number, stripes: number, algorithm: SplitHash): Uint8Array {
  let sum = Buffer.alloc(length)
  for (let stripe = 0; stripe < stripes - 1; stripe++) {
    const at = stripe * length
    for (let index = 0; index < length; index++) sum[index] = (sum[index] ?? 0) ^ (spread[at + index] ?? 0)
    sum = diffuse(sum, algorithm)
  }
  return sum
}

/** Replaces each piece of the hash's length by the hash of its number, big endian, and itself; the last one is cut off. */
function diffuse(bytes: Buffer, algorithm: SplitHash): Buffer<ArrayBuffer> {
  const size = splitHashes[algorithm]
  const result = Buffer.alloc(bytes.length)
  const numbered = Buffer.alloc(4 + size)
  for (let at = 0; at < bytes.length; at += size) {
    const length = Math.min(size, bytes.length - at)
    numbered.writeUInt32BE(at / size, 0)
    bytes.copy(numbered, 4, at, at + length)
    hash(algorithm, length === size ? numbered : numbered.subarray(0, 4 + length), 'buffer').copy(result, at, 0, length)
  }
  return result
}
