/** CRC-32C (Castagnoli, RFC 9260 appendix B), incremental; the runtime only has the other polynomial. */

const polynomial = 0x82f63b78 // reflected
const mask = -1

/** Eight tables of 256 values, concatenated: table k is for a byte followed by k zero bytes. */
const tables = new Int32Array(8 * 256)
for (let byte = 0; byte < 256; byte++) {
  let sum = byte
  for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ polynomial : sum >>> 1
  tables[byte] = sum
}
for (let at = 256; at < tables.length; at++) {
  const before = tables[at - 256]!
  tables[at] = (before >>> 8) ^ tables[before & 0xff]!
}

/** An incremental checksum. */
export class Crc32c {
  #sum = mask

  update(bytes: Uint8Array): void {
    let sum = this.#sum
    let at = 0
    for (const end = bytes.length - (bytes.length % 8); at < end; at += 8) {
      sum ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
      sum =
        tables[0x700 | (sum & 0xff)]! ^
        tables[0x600 | ((sum >>> 8) & 0xff)]! ^
        tables[0x500 | ((sum >>> 16) & 0xff)]! ^
        tables[0x400 | (sum >>> 24)]! ^
        tables[0x300 | bytes[at + 4]!]! ^
        tables[0x200 | bytes[at + 5]!]! ^
        tables[0x100 | bytes[at + 6]!]! ^
        tables[bytes[at + 7]!]!
    }
    for (; at < bytes.length; at++) sum = (sum >>> 8) ^ tables[(sum ^ bytes[at]!) & 0xff]!
    this.#sum = sum
  }

  /** The checksum of all pieces, unsigned. */
  get value(): number {
    return (this.#sum ^ mask) >>> 0
  }
}
