/** The entry array of a GUID partition table (UEFI 2.10, 5.3.3). */
import { DecodeError } from '../decode-error.ts'
import { noGuid, readGuid, writeGuid } from './guid.ts'
import { entrySize, type GptHeader } from './header.ts'

/** Maximum length of a name in UTF-16 code units. */
export const longestName = 36

/** A partition entry. Sectors, both ends inclusive. */
export interface GptPartition {
  /** Its number, from 1. */
  index: number
  type: string
  guid: string
  first: number
  last: number
  attributes: bigint
  name: string
}

/** Decodes an entry array. Throws DecodeError when its checksum does not match the header, or partitions overlap or exceed the disk. */
export function readEntries(bytes: Uint8Array, { entries, entriesCrc, firstUsable, lastUsable }: GptHeader): GptPartition[] {
  const fail = (offset: number, detail: string): never => {
    throw new DecodeError('GPT entries', offset, detail)
  }
  if (bytes.length < entries * entrySize) fail(bytes.length, 'the array ends too soon')
  const array = Buffer.from(bytes.buffer, bytes.byteOffset, entries * entrySize)
  if (Bun.hash.crc32(array) !== entriesCrc) fail(0, 'its sum is wrong')
  const partitions: GptPartition[] = []
  for (let index = 0; index < entries; index++) {
    const at = index * entrySize
    const type = readGuid(array, at)
    if (type === noGuid) continue
    const first = array.readBigUInt64LE(at + 32)
    const last = array.readBigUInt64LE(at + 40)
    if (first < BigInt(firstUsable) || last > BigInt(lastUsable) || first > last)
      fail(at, `partition ${index + 1} lies outside of the disk`)
    const name = array.toString('utf16le', at + 56, at + entrySize)
    const end = name.indexOf('\0')
    partitions.push({
      index: index + 1,
      type,
      guid: readGuid(array, at + 16),
      first: Number(first),
      last: Number(last),
      attributes: array.readBigUInt64LE(at + 48),
      name: end < 0 ? name : name.slice(0, end),
    })
  }
  checkOverlap(partitions)
  return partitions
}

/** Encodes the array. Throws DecodeError for a partition that does not fit in it. */
export function writeEntries(partitions: readonly GptPartition[], entries: number): Uint8Array {
  const array = Buffer.alloc(entries * entrySize)
  checkOverlap(partitions)
  for (const { index, type, guid, first, last, attributes, name } of partitions) {
    if (index < 1 || index > entries) throw new DecodeError('GPT entries', 0, `there is no entry ${index}`)
    if (name.length > longestName) throw new DecodeError('GPT entries', 0, `name ${JSON.stringify(name)} is longer than ${longestName}`)
    const at = (index - 1) * entrySize
    array.set(writeGuid(type), at)
    array.set(writeGuid(guid), at + 16)
    array.writeBigUInt64LE(BigInt(first), at + 32)
    array.writeBigUInt64LE(BigInt(last), at + 40)
    array.writeBigUInt64LE(attributes, at + 48)
    array.write(name, at + 56, 'utf16le')
  }
  return new Uint8Array(array)
}

function checkOverlap(partitions: readonly GptPartition[]): void {
  const sorted = [...partitions].sort((a, b) => a.first - b.first)
  for (const [place, { index, first }] of sorted.entries()) {
    const before = sorted[place - 1]
    if (before && before.last >= first) throw new DecodeError('GPT entries', 0, `partitions ${before.index} and ${index} overlap`)
  }
}
