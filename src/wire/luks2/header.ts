/**
 * The header of LUKS2 (LUKS2 On-Disk Format Specification 1.1.1, 2): a binary part and metadata, twice. Each copy has a checksum
 * and a sequence number. A change writes the first copy, then the second, so that a power cut leaves one that is valid.
 */
import { hash, randomBytes } from 'node:crypto'
import { DecodeError } from '../decode-error.ts'
import type { WriteStep } from '../gpt/table.ts'
import { type Metadata, parseMetadata } from './metadata.ts'

const magic = ['LUKS\xba\xbe', 'SKUL\xba\xbe'] as const
const version = 2
const binarySize = 4096
/** Header sizes of the specification, smallest first. */
export const headerSizes = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096].map((kibibytes) => kibibytes * 1024)
const checksum = { at: 448, length: 64, algorithm: 'sha256' } as const

/** A header. */
export interface Header {
  /** Bytes of one copy. */
  readonly size: number
  /** Counts changes. */
  readonly sequence: bigint
  readonly uuid: string
  readonly label: string
  readonly subsystem: string
  readonly metadata: Metadata
  /** The copy that has to be written again. */
  readonly damaged?: 'first' | 'second' | undefined
}

/** Whether these bytes begin a first or second header copy of any version. */
export const isLuks = (bytes: Uint8Array): boolean =>
  (magic as readonly string[]).includes(Buffer.from(bytes.subarray(0, 6)).toString('latin1'))

/** Reads `length` bytes of a device. */
export type Read = (offset: number, length: number) => Promise<Uint8Array>

/** Reads the header of a device: the newer of its valid copies. Throws DecodeError if there is none. */
export async function readHeader(read: Read, deviceSize: number): Promise<Header> {
  const attempt = async (offset: number, copy: 0 | 1): Promise<Header | DecodeError> => {
    try {
      if (offset + binarySize > deviceSize) throw new DecodeError('LUKS2 header', offset, 'beyond the end of the device')
      const size = sizeOf(await read(offset, binarySize), offset, copy)
      if (offset + size > deviceSize) throw new DecodeError('LUKS2 header', offset, 'beyond the end of the device')
      return readCopy(await read(offset, size), offset, copy)
    } catch (error) {
      if (error instanceof DecodeError) return error
      throw error
    }
  }
  const first = await attempt(0, 0)
  if (!(first instanceof DecodeError)) {
    const second = await attempt(first.size, 1)
    if (second instanceof DecodeError) return { ...first, damaged: 'second' }
    if (second.uuid !== first.uuid) throw new DecodeError('LUKS2 header', 0, 'its copies belong to different volumes')
    if (second.sequence === first.sequence && JSON.stringify(second.metadata) !== JSON.stringify(first.metadata))
      throw new DecodeError('LUKS2 header', 0, 'its copies differ though they have the same sequence number')
    if (second.sequence === first.sequence) return first
    return second.sequence > first.sequence ? { ...second, damaged: 'first' } : { ...first, damaged: 'second' }
  }
  // Where the first copy is unreadable, the second may be at any of the offsets a first copy can end.
  for (const size of headerSizes) {
    const second = await attempt(size, 1)
    if (!(second instanceof DecodeError) && second.size === size) return { ...second, damaged: 'first' }
  }
  throw first
}

function sizeOf(binary: Uint8Array, offset: number, copy: 0 | 1): number {
  const bytes = Buffer.from(binary.buffer, binary.byteOffset, binary.byteLength)
  if (bytes.toString('latin1', 0, 6) !== magic[copy]) throw new DecodeError('LUKS2 header', offset, 'no signature')
  if (bytes.readUInt16BE(6) !== version) throw new DecodeError('LUKS2 header', offset + 6, `version ${bytes.readUInt16BE(6)}`)
  const size = Number(bytes.readBigUInt64BE(8))
  if (!headerSizes.includes(size)) throw new DecodeError('LUKS2 header', offset + 8, 'a size that no header has')
  return size
}

function readCopy(copyBytes: Uint8Array, offset: number, copy: 0 | 1): Header {
  const bytes = Buffer.from(copyBytes)
  const size = sizeOf(bytes, offset, copy)
  if (Number(bytes.readBigUInt64BE(256)) !== offset) throw new DecodeError('LUKS2 header', offset + 256, 'it belongs elsewhere')
  if (textAt(bytes, 72, 32) !== checksum.algorithm) throw new DecodeError('LUKS2 header', offset + 72, 'an unknown checksum')
  const sum = bytes.subarray(checksum.at, checksum.at + 32)
  if (!sumOf(bytes).equals(sum)) throw new DecodeError('LUKS2 header', offset + checksum.at, 'its checksum is wrong')
  const end = bytes.indexOf(0, binarySize)
  const text = bytes.toString('utf8', binarySize, end < 0 ? size : end)
  return {
    size,
    sequence: bytes.readBigUInt64BE(16),
    uuid: textAt(bytes, 168, 40),
    label: textAt(bytes, 24, 48),
    subsystem: textAt(bytes, 208, 48),
    metadata: parseMetadata(text, size),
  }
}

/** The checksum covers the whole copy, with the checksum itself as zeros. */
function sumOf(copy: Buffer): Buffer {
  const summed = Buffer.from(copy)
  summed.fill(0, checksum.at, checksum.at + checksum.length)
  return hash(checksum.algorithm, summed, 'buffer')
}

function textAt(bytes: Buffer, offset: number, length: number): string {
  const end = bytes.indexOf(0, offset)
  return bytes.toString('utf8', offset, end < 0 || end > offset + length ? offset + length : end)
}

/** The writes for a header. */
export function writeHeader(header: Header): WriteStep[] {
  return [[{ offset: 0, bytes: writeCopy(header, 0) }], [{ offset: header.size, bytes: writeCopy(header, 1) }]]
}

function writeCopy({ size, sequence, uuid, label, subsystem, metadata }: Header, copy: 0 | 1): Uint8Array {
  const text = Buffer.from(JSON.stringify(metadata))
  // A zero ends the text.
  if (binarySize + text.length >= size) throw new RangeError(`the metadata of ${text.length} bytes does not fit into its header`)
  const bytes = Buffer.alloc(size)
  bytes.write(magic[copy], 0, 'latin1')
  bytes.writeUInt16BE(version, 6)
  bytes.writeBigUInt64BE(BigInt(size), 8)
  bytes.writeBigUInt64BE(sequence, 16)
  bytes.write(label, 24, 47)
  bytes.write(checksum.algorithm, 72)
  bytes.set(randomBytes(64), 104)
  bytes.write(uuid, 168, 39)
  bytes.write(subsystem, 208, 47)
  bytes.writeBigUInt64BE(BigInt(copy * size), 256)
  bytes.set(text, binarySize)
  bytes.set(sumOf(bytes), checksum.at)
  return new Uint8Array(bytes)
}

/** The header after a change of its metadata. */
export const changed = (header: Header, metadata: Metadata): Header => ({
  ...header,
  metadata,
  sequence: header.sequence + 1n,
  damaged: undefined,
})
