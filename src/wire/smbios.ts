/** The firmware's description of the machine: SMBIOS structures (DMTF DSP0134), as the kernel shows them in /sys/firmware/dmi/tables/DMI. */
import { DecodeError } from './decode-error.ts'
import { uuidOfHex } from './probe/signature.ts'

/** One structure: its type, its bytes including the header, and its strings. */
export interface SmbiosStructure {
  readonly type: number
  readonly bytes: Uint8Array
  readonly strings: readonly string[]
}

const headerLength = 4
const endOfTable = 127
/** No firmware has a larger table. */
const most = 4096

/** All structures of a table up to its end-of-table structure (section 6.1). Throws DecodeError where one exceeds the table. */
export function parseSmbios(table: Uint8Array): SmbiosStructure[] {
  const found: SmbiosStructure[] = []
  let at = 0
  while (at + headerLength <= table.length && found.length < most) {
    const [type = 0, length = 0] = table.subarray(at)
    if (length < headerLength || at + length > table.length)
      throw new DecodeError('SMBIOS table', at, `a structure of ${length} bytes does not fit`)
    const strings: string[] = []
    let end = at + length
    // Each string ends with a zero, and the set with another one; a structure without strings has two zeros.
    while (end < table.length && table[end] !== 0) {
      const zero = table.indexOf(0, end)
      if (zero < 0) throw new DecodeError('SMBIOS table', end, 'a string has no end')
      strings.push(Buffer.from(table.subarray(end, zero)).toString('latin1').trim())
      end = zero + 1
    }
    found.push({ type, bytes: table.subarray(at, at + length), strings })
    if (type === endOfTable) break
    at = Math.max(end + 1, at + length + 2)
  }
  return found
}

/** Reads fields of a structure; those beyond its length are undefined. */
export function smbiosFields({ bytes, strings }: SmbiosStructure) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const fits = (offset: number, size: number) => offset + size <= bytes.length
  return {
    byte: (offset: number) => (fits(offset, 1) ? view.getUint8(offset) : undefined),
    word: (offset: number) => (fits(offset, 2) ? view.getUint16(offset, true) : undefined),
    double: (offset: number) => (fits(offset, 4) ? view.getUint32(offset, true) : undefined),
    text: (offset: number) => (fits(offset, 1) ? strings[view.getUint8(offset) - 1] : undefined),
    /** The first three fields are little endian (section 7.2.1); undefined when the machine has none. */
    uuid(offset: number): string | undefined {
      if (!fits(offset, 16)) return undefined
      const raw = bytes.subarray(offset, offset + 16)
      if (raw.every((byte) => byte === 0) || raw.every((byte) => byte === 0xff)) return undefined
      const view = new DataView(raw.buffer, raw.byteOffset)
      const order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15]
      return uuidOfHex(Buffer.from(order.map((index) => view.getUint8(index))).toString('hex'))
    },
  }
}
