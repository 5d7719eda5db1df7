/** Boot options of the firmware and their order, as stored in variables (UEFI Specification 2.10, sections 3.1 and 10.3). */
import { DecodeError } from '../decode-error.ts'
import { writeGuid } from '../gpt/guid.ts'

/** Vendor GUID of the variables that the specification defines. */
export const globalVendor = '8be4df61-93ca-11d2-aa0d-00e098032b8c'

/** A program on a partition of a disk with GPT. */
export interface DiskProgram {
  /** As shown in boot menus. */
  readonly title: string
  readonly partition: { readonly index: number; readonly uuid: string; readonly firstSector: number; readonly sectors: number }
  /** With backslashes, from the root of the partition. */
  readonly file: string
}

const utf16 = (text: string) => Buffer.from(`${text}\0`, 'utf16le')

/** Encodes an active option (EFI_LOAD_OPTION). */
export function formatBootOption({ title, partition, file }: DiskProgram): Uint8Array {
  const disk = Buffer.alloc(42)
  disk.set([4, 1], 0) // media, hard drive
  disk.writeUInt16LE(disk.length, 2)
  disk.writeUInt32LE(partition.index, 4)
  disk.writeBigUInt64LE(BigInt(partition.firstSector), 8)
  disk.writeBigUInt64LE(BigInt(partition.sectors), 16)
  disk.set(writeGuid(partition.uuid), 24)
  disk.set([2, 2], 40) // GPT, known by a GUID
  const path = utf16(file)
  const node = Buffer.alloc(4)
  node.set([4, 4], 0) // media, file path
  node.writeUInt16LE(4 + path.length, 2)
  const end = Buffer.from([0x7f, 0xff, 4, 0])
  const head = Buffer.alloc(6)
  head.writeUInt32LE(1, 0) // active
  head.writeUInt16LE(disk.length + node.length + path.length + end.length, 4)
  return Buffer.concat([head, utf16(title), disk, node, path, end])
}

/** The title of an option. Throws DecodeError when it is malformed. */
export function bootOptionTitle(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = 6; at + 1 < text.length; at += 2) if (text.readUInt16LE(at) === 0) return text.toString('utf16le', 6, at)
  throw new DecodeError('boot option', text.length, 'its title does not end')
}

/** Option numbers in boot order. */
export function parseBootOrder(bytes: Uint8Array): number[] {
  if (bytes.length % 2) throw new DecodeError('boot order', bytes.length, 'an odd number of bytes')
  const order = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Array.from({ length: order.length / 2 }, (_, index) => order.readUInt16LE(index * 2))
}

/** Encodes a boot order. */
export function formatBootOrder(order: readonly number[]): Uint8Array {
  const bytes = Buffer.alloc(order.length * 2)
  for (const [index, number] of order.entries()) bytes.writeUInt16LE(number, index * 2)
  return bytes
}

/** The variable name of an option. */
export const bootOptionName = (number: number): string => `Boot${number.toString(16).toUpperCase().padStart(4, '0')}`
