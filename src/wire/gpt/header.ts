/**
 * The header of a GUID partition table (UEFI 2.10, 5.3.2): one sector with the place of the entry array and the checksums of
 * both. It is stored in sector 1, and again in the last sector of the disk.
 */
import { DecodeError } from '../decode-error.ts'
import { readGuid, writeGuid } from './guid.ts'

const signature = 'EFI PART'
const revision = 0x00010000
const headerSize = 92
/** More entries than any tool writes; an upper bound for malformed headers. */
const mostEntries = 1024

/** Size of one entry in bytes: the only size the kernel accepts. */
export const entrySize = 128

/** A header. Offsets are in sectors. */
export interface GptHeader {
  /** The sector of this header, and of the other one. */
  own: number
  other: number
  firstUsable: number
  lastUsable: number
  diskGuid: string
  /** First sector of the entry array, number of entries, and checksum. */
  entriesAt: number
  entries: number
  entriesCrc: number
}

const crc32 = (bytes: Uint8Array): number => Bun.hash.crc32(bytes)

/** Parses the header in sector `own` of a disk with `sectors`. Throws DecodeError for a damaged one. */
export function readHeader(sector: Uint8Array, own: number, sectors: number): GptHeader {
  const bytes = Buffer.from(sector.buffer, sector.byteOffset, sector.byteLength)
  const fail = (offset: number, detail: string): never => {
    throw new DecodeError('GPT header', offset, detail)
  }
  if (bytes.length < 512) fail(bytes.length, 'less than a sector')
  if (bytes.toString('latin1', 0, 8) !== signature) fail(0, 'no signature')
  const size = bytes.readUInt32LE(12)
  if (size < headerSize || size > bytes.length) fail(12, `a header of ${size} bytes`)
  const summed = Buffer.from(bytes.subarray(0, size))
  summed.writeUInt32LE(0, 16)
  if (crc32(summed) !== bytes.readUInt32LE(16)) fail(16, 'its sum is wrong')
  const place = (offset: number): number => {
    const value = bytes.readBigUInt64LE(offset)
    return value < BigInt(sectors) ? Number(value) : fail(offset, 'a place behind the end of the disk')
  }
  if (place(24) !== own) fail(24, 'it belongs to another sector')
  if (bytes.readUInt32LE(84) !== entrySize) fail(84, `entries of ${bytes.readUInt32LE(84)} bytes`)
  const entries = bytes.readUInt32LE(80)
  if (entries === 0 || entries > mostEntries) fail(80, `${entries} entries`)
  // The backup may be past the end of a disk that has shrunk; it is then missing.
  const other = bytes.readBigUInt64LE(32)
  const header = {
    own,
    other: other < BigInt(Number.MAX_SAFE_INTEGER) ? Number(other) : fail(32, 'a place beyond any disk'),
    firstUsable: place(40),
    lastUsable: place(48),
    diskGuid: readGuid(bytes, 56),
    entriesAt: place(72),
    entries,
    entriesCrc: bytes.readUInt32LE(88),
  }
  if (header.firstUsable > header.lastUsable) fail(40, 'it has no room for partitions')
  return header
}

/** Encodes the header sector; `crc` is the checksum of the entry array. */
export function writeHeader(header: GptHeader, sectorSize: number): Uint8Array {
  const sector = Buffer.alloc(sectorSize)
  sector.write(signature, 'latin1')
  sector.writeUInt32LE(revision, 8)
  sector.writeUInt32LE(headerSize, 12)
  sector.writeBigUInt64LE(BigInt(header.own), 24)
  sector.writeBigUInt64LE(BigInt(header.other), 32)
  sector.writeBigUInt64LE(BigInt(header.firstUsable), 40)
  sector.writeBigUInt64LE(BigInt(header.lastUsable), 48)
  sector.set(writeGuid(header.diskGuid), 56)
  sector.writeBigUInt64LE(BigInt(header.entriesAt), 72)
  sector.writeUInt32LE(header.entries, 80)
  sector.writeUInt32LE(entrySize, 84)
  sector.writeUInt32LE(header.entriesCrc, 88)
  sector.writeUInt32LE(crc32(sector.subarray(0, headerSize)), 16)
  return new Uint8Array(sector)
}
