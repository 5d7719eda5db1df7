/** AES-XTS (IEEE 1619) as dm-crypt's `aes-xts-plain64` applies it: the tweak of a sector is its number, little endian. */
import { createCipheriv, createDecipheriv } from 'node:crypto'

const block = 16
/** 32-bit words of a block. */
const words = block / 4
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
function maskOf(starts: Uint8Array, length: number): Uint32Array {
  const from = wordsOf(starts)
  const mask = new Uint32Array(length / 4)
  for (let at = 0; at < mask.length; at += words) {
    const begins = at % (sector / 4) === 0
    const source = begins ? from : mask
    const place = begins ? (at / (sector / 4)) * words : at - words
    const w0 = source[place] ?? 0
    const w1 = source[place + 1] ?? 0
    const w2 = source[place + 2] ?? 0
    const w3 = source[place + 3] ?? 0
    mask[at] = begins ? w0 : (w0 << 1) ^ (w3 >>> 31 ? 0x87 : 0)
    mask[at + 1] = begins ? w1 : (w1 << 1) | (w0 >>> 31)
    mask[at + 2] = begins ? w2 : (w2 << 1) | (w1 >>> 31)
    mask[at + 3] = begins ? w3 : (w3 << 1) | (w2 >>> 31)
  }
  return mask
}

/** A copy as words, little endian as every machine that runs this is. */
const wordsOf = (bytes: Uint8Array): Uint32Array => new Uint32Array(new Uint8Array(bytes).buffer)

function xor(bytes: Uint8Array, mask: Uint32Array): Uint8Array {
  const result = wordsOf(bytes)
  for (let index = 0; index < result.length; index++) result[index] = (result[index] ?? 0) ^ (mask[index] ?? 0)
  return new Uint8Array(result.buffer)
}
