/** The checksum of IP, TCP and UDP (RFC 1071) over long stretches of large buffers, on little-endian processors. */
import { IPPROTO_TCP, ip4At, ip6At } from './tcp-header.ts'

/** Adds the carries of a sum of 16-bit words to it. */
export function fold(sum: number): number {
  let folded = (sum & 0xffff) + (sum >>> 16)
  folded = (folded & 0xffff) + (folded >>> 16)
  return folded
}

/** Reads and writes 16 bits in network order. */
export const u16At = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
export function putU16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 8
  bytes[at + 1] = value & 0xff
}

/** Sums of bytes as 16-bit words in network order. The view of the last buffer is kept, as most calls are for the same one. */
export class WordSums {
  #buffer: ArrayBufferLike | undefined
  #words: Uint32Array = new Uint32Array()

  /** The folded sum of `bytes` from one offset to another, which has to be within them; a last odd byte counts as the high one. */
  sum(bytes: Uint8Array, from: number, to: number): number {
    if (bytes.buffer !== this.#buffer) {
      this.#buffer = bytes.buffer
      this.#words = new Uint32Array(bytes.buffer, 0, bytes.buffer.byteLength >> 2)
    }
    const shift = bytes.byteOffset
    const odd = (shift + from) & 1
    let at = from
    let sum = 0
    // Words are read as the processor does, with the bytes swapped; one that starts at an odd address is swapped once more.
    for (; at < to && ((shift + at) & 3) !== 0; at++) sum += (bytes[at] ?? 0) << (((shift + at) & 1) * 8)
    const words = this.#words
    const end = (shift + to) >>> 2
    if (at < to) for (let index = (shift + at) >>> 2; index < end; index++) sum += words[index] ?? 0
    for (at = Math.max(at, end * 4 - shift); at < to; at++) sum += (bytes[at] ?? 0) << (((shift + at) & 1) * 8)
    const low = sum >>> 0
    const folded = fold((low & 0xffff) + (low >>> 16) + Math.floor(sum / 2 ** 32))
    return odd ? folded : ((folded & 0xff) << 8) | (folded >>> 8)
  }
}

/** The folded sum of the pseudo-header of TCP (RFC 9293, section 3.1; RFC 8200, section 8.1) for `length` bytes of header and payload. */
export function pseudoSum(sums: WordSums, bytes: Uint8Array, ip: number, version: 4 | 6, length: number): number {
  // The addresses are the last fields of both headers.
  const [from, to] = version === 4 ? [ip4At.source, ip4At.length] : [ip6At.source, ip6At.length]
  return fold(sums.sum(bytes, ip + from, ip + to) + IPPROTO_TCP + length)
}

/** The checksum of a sum. */
export const complement = (sum: number): number => ~sum & 0xffff
