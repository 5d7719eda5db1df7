/**
 * Compressed disks of VMware as they are shipped (Virtual Disk Format 5.0, "stream-optimized"): grains of 64 KiB that hold something, in the
 * order of the disk, each deflated; behind each group of 512 the table of where they are; at the end the directory of these tables.
 */
import { type FileHandle, open } from 'node:fs/promises'
import { deflateSync } from 'node:zlib'
import { isZero } from './zeros.ts'

const sectorSize = 512
const grainSectors = 128
const grainSize = grainSectors * sectorSize
const perTable = 512
const tableSectors = (perTable * 4) / sectorSize
const descriptorSectors = 20
/** Where the grains start: behind header and descriptor, at a whole grain. */
const overhead = grainSectors
const version = 3
/** Newline test, compressed grains, markers. */
const flags = 1 | (1 << 16) | (1 << 17)
const deflate = 1
const markers = { end: 0, table: 1, directory: 2, footer: 3 } as const
/** The directory is where the footer states. */
const atEnd = 0xffff_ffff_ffff_ffffn
const unknownSector = 0n

/** Appends to a file in whole sectors. */
class SectorWriter {
  /** The next sector. */
  next = 0
  readonly #file: FileHandle

  constructor(file: FileHandle) {
    this.#file = file
  }

  /** Appends bytes, filled up with zeros; returns their first sector. */
  async append(bytes: Uint8Array): Promise<number> {
    const at = this.next
    const padded = Buffer.alloc(Math.ceil(bytes.length / sectorSize) * sectorSize)
    padded.set(bytes)
    await this.#file.write(padded, 0, padded.length, at * sectorSize)
    this.next += padded.length / sectorSize
    return at
  }

  /** Appends a marker and what it announces; returns the sector of the latter. */
  async announce(type: number, content: Uint8Array): Promise<number> {
    const marker = Buffer.alloc(sectorSize)
    marker.writeBigUInt64LE(BigInt(Math.ceil(content.length / sectorSize)), 0)
    marker.writeUInt32LE(type, 12)
    await this.append(marker)
    return content.length > 0 ? this.append(content) : this.next
  }
}

/** Writes a disk of `size` bytes that begins with what `source` holds; the identification is hexadecimal. Equal content gives equal bytes. */
export async function writeVmdk(path: string, source: string, size: number, identification: string): Promise<void> {
  const input = await open(source, 'r')
  const output = await open(path, 'w', 0o644)
  try {
    const held = (await input.stat()).size
    if (held > size || size % grainSize) throw new RangeError(`a disk of ${size} bytes does not hold ${held} in whole grains`)
    const writer = new SectorWriter(output)
    await writer.append(header(size, atEnd))
    await writer.append(descriptor(size, identification))
    writer.next = overhead
    const directory = Buffer.alloc(Math.ceil(size / grainSize / perTable) * 4)
    for (let table = 0; table * 4 < directory.length; table++) {
      const entries = await writeGrains(writer, input, table, held)
      if (!isZero(entries)) directory.writeUInt32LE(await writer.announce(markers.table, entries), table * 4)
    }
    const at = await writer.announce(markers.directory, directory)
    await writer.announce(markers.footer, header(size, BigInt(at)))
    await writer.append(Buffer.alloc(sectorSize)) // the marker of the end
  } finally {
    await input.close()
    await output.close()
  }
}

/** Appends the grains of a table that hold something; returns the table. */
async function writeGrains(writer: SectorWriter, input: FileHandle, table: number, held: number): Promise<Buffer> {
  const entries = Buffer.alloc(tableSectors * sectorSize)
  const buffer = Buffer.alloc(grainSize)
  for (let index = 0; index < perTable; index++) {
    const offset = (table * perTable + index) * grainSize
    if (offset >= held) break
    const { bytesRead } = await input.read(buffer, 0, grainSize, offset)
    buffer.fill(0, bytesRead)
    if (isZero(buffer)) continue
    const compressed = deflateSync(buffer)
    const marker = Buffer.alloc(12)
    marker.writeBigUInt64LE(BigInt(offset / sectorSize), 0)
    marker.writeUInt32LE(compressed.length, 8)
    entries.writeUInt32LE(await writer.append(Buffer.concat([marker, compressed])), index * 4)
  }
  return entries
}

/** SparseExtentHeader; at the end of the file it is repeated with the sector of the directory. */
function header(size: number, directory: bigint): Buffer {
  const bytes = Buffer.alloc(sectorSize)
  bytes.write('KDMV', 0, 'latin1')
  bytes.writeUInt32LE(version, 4)
  bytes.writeUInt32LE(flags, 8)
  bytes.writeBigUInt64LE(BigInt(size / sectorSize), 12)
  bytes.writeBigUInt64LE(BigInt(grainSectors), 20)
  bytes.writeBigUInt64LE(1n, 28)
  bytes.writeBigUInt64LE(BigInt(descriptorSectors), 36)
  bytes.writeUInt32LE(perTable, 44)
  bytes.writeBigUInt64LE(unknownSector, 48) // there is no second directory
  bytes.writeBigUInt64LE(directory, 56)
  bytes.writeBigUInt64LE(BigInt(overhead), 64)
  bytes.write('\n \r\n', 73, 'latin1')
  bytes.writeUInt16LE(deflate, 77)
  return bytes
}

function descriptor(size: number, identification: string): Buffer {
  const sectors = size / sectorSize
  const text = `# Disk DescriptorFile
version=1
CID=${identification.slice(0, 8)}
parentCID=ffffffff
createType="streamOptimized"

# Extent description
RW ${sectors} SPARSE "disk.vmdk"

# The Disk Data Base
ddb.adapterType = "lsilogic"
ddb.geometry.cylinders = "${Math.min(65_535, Math.floor(sectors / 255 / 63))}"
ddb.geometry.heads = "255"
ddb.geometry.sectors = "63"
ddb.virtualHWVersion = "15"
`
  const bytes = Buffer.alloc(descriptorSectors * sectorSize)
  bytes.write(text, 0, 'latin1')
  return bytes
}
