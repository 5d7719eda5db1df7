/** CRC-32C (Castagnoli, RFC 9260 appendix B), incremental; the runtime only has the other polynomial. */

const polynomial = 0x82f63b78 // reflected
const mask = -1

/** Eight tables of 256 values, concatenated: table k is for a byte followed by k zero bytes. */
const tables = new Int32Array(8 * 256)
/** An entry of the tables; every index is below their length. */
const entry = (index: number): number => tables[index] ?? 0
for (let byte = 0; byte < 256; byte++) {
  let sum = byte
  for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ polynomial : sum >>> 1
  tables[byte] = sum
}
for (let at = 256; at < tables.length; at++) {
  const before = entry(at - 256)
  tables[at] = (before >>> 8) ^ entry(before & 0xff)
}

/** An incremental checksum. */
export class Crc32c {
  #sum: number

  /** Continues after the bytes that have this checksum; by default there are none. */
  constructor(before = 0) {
    this.#sum = before ^ mask
  }

  update(bytes: Uint8Array): void {
    let sum = this.#sum
    let at = 0
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    for (const end = bytes.length - (bytes.length % 8); at < end; at += 8) {
      sum ^= view.getInt32(at, true)
      const next = view.getInt32(at + 4, true)
      sum =
        entry(0x700 | (sum & 0xff)) ^
        entry(0x600 | ((sum >>> 8) & 0xff)) ^
        entry(0x500 | ((sum >>> 16) & 0xff)) ^
        entry(0x400 | (sum >>> 24)) ^
        entry(0x300 | (next & 0xff)) ^
        entry(0x200 | ((next >>> 8) & 0xff)) ^
        entry(0x100 | ((next >>> 16) & 0xff)) ^
        entry(next >>> 24)
    }
    for (; at < bytes.length; at++) sum = (sum >>> 8) ^ entry((sum ^ view.getUint8(at)) & 0xff)
    this.#sum = sum
  }

  /** The checksum of all pieces, unsigned. */
  get value(): number {
    return (this.#sum ^ mask) >>> 0
  }
}
