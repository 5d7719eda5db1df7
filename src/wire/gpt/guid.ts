/** GUIDs as stored by GPT: the first three groups little endian, the last two big endian. */
import { DecodeError } from '../decode-error.ts'

const size = 16
const order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15] as const
const form = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** The zero GUID: an entry of this type is free. */
export const noGuid = '00000000-0000-0000-0000-000000000000'

/** Formats 16 bytes in lower case. */
export function readGuid(bytes: Uint8Array, at = 0): string {
  if (at + size > bytes.length) throw new DecodeError('GUID', at, 'fewer than 16 bytes')
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, size)
  const hex = Buffer.from(order.map((index) => view.getUint8(index))).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Parses a GUID in either case to 16 bytes. */
export function writeGuid(text: string): Uint8Array {
  const plain = text.toLowerCase()
  if (!form.test(plain)) throw new DecodeError('GUID', 0, `${JSON.stringify(text)} is not a GUID`)
  const read = Buffer.from(plain.replaceAll('-', ''), 'hex')
  const bytes = new Uint8Array(size)
  for (const [index, place] of order.entries()) bytes[place] = read.readUInt8(index)
  return bytes
}
