/** AES-XTS (IEEE 1619) as dm-crypt's `aes-xts-plain64` applies it: the tweak of a sector is its number, little endian. */
import { createCipheriv, createDecipheriv } from 'node:crypto'

const block = 16
const sector = 512

/** Encrypts or decrypts whole sectors of 512 bytes. The key holds two AES keys of equal length, 32 or 64 bytes together. */
export function aesXts(direction: 'encrypt' | 'decrypt', key: Uint8Array, bytes: Uint8Array, first = 0): Uint8Array {
  if (key.length !== 32 && key.length !== 64) throw new RangeError(`AES-XTS with a key of ${key.length} bytes`)
  if (bytes.length % sector !== 0) throw new RangeError(`AES-XTS of ${bytes.length} bytes, which are no whole sectors`)
  const half = key.length / 2
  // The runtime has no XTS; it is two passes of single blocks.
  const algorithm = half === 16 ? 'aes-128-ecb' : 'aes-256-ecb'
  const tweaks = createCipheriv(algorithm, key.subarray(half), null).setAutoPadding(false)
  const data = (direction === 'encrypt' ? createCipheriv : createDecipheriv)(algorithm, key.subarray(0, half), null).setAutoPadding(false)
  const mask = maskOf(tweaks.update(sectorNumbers(first, bytes.length / sector)), bytes.length)
  return xor(data.update(xor(bytes, mask)), mask)
}

function sectorNumbers(first: number, count: number): Buffer {
  const numbers = Buffer.alloc(count * block)
  for (let index = 0; index < count; index++) numbers.writeBigUInt64LE(BigInt(first + index), index * block)
  return numbers
}

/** The mask of every block: the encrypted sector number, multiplied by x for each further block of the sector. */
function maskOf(starts: Uint8Array, length: number): Uint8Array {
  const mask = new Uint8Array(length)
  for (let at = 0; at < length; at += block) {
    if (at % sector === 0) {
      mask.set(starts.subarray((at / sector) * block, (at / sector + 1) * block), at)
      continue
    }
    let carry = 0
    for (let index = 0; index < block; index++) {
      const byte = mask[at - block + index] ?? 0
      mask[at + index] = (byte << 1) | carry
      carry = byte >> 7
    }
    if (carry) mask[at] = (mask[at] ?? 0) ^ 0x87
  }
  return mask
}

function xor(bytes: Uint8Array, mask: Uint8Array): Uint8Array {
  const result = new Uint8Array(bytes.length)
  for (let index = 0; index < bytes.length; index++) result[index] = (bytes[index] ?? 0) ^ (mask[index] ?? 0)
  return result
}
