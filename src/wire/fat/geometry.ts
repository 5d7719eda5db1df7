/**
 * Where things lie in a FAT32 file system (Microsoft, "FAT32 File System Specification" 1.03): reserved sectors with the
 * boot sector, two copies of the allocation table, then clusters of data counted from 2.
 */
import { DecodeError } from '../decode-error.ts'

/** What a boot sector and FSInfo say lies in so many bytes, however long the sectors are. */
export const headerSize = 512

/** Entries of the table from this value on end a chain. */
export const endOfChain = 0x0ffffff8

/** The measures of one file system, in sectors unless said otherwise. */
export interface Geometry {
  /** Bytes; at least what the disk writes at once, or nobody mounts it. */
  readonly sectorSize: number
  readonly sectors: number
  readonly reserved: number
  readonly tables: number
  readonly tableSectors: number
  readonly perCluster: number
  /** How many clusters hold data; their numbers are 2 to `clusters + 1`. */
  readonly clusters: number
  readonly rootCluster: number
  /** Sector of FSInfo, where the count of free clusters is written down. */
  readonly info: number
  readonly label: string
}

/** Byte offset of a cluster. */
export function clusterOffset({ sectorSize, reserved, tables, tableSectors, perCluster }: Geometry, cluster: number): number {
  return (reserved + tables * tableSectors + (cluster - 2) * perCluster) * sectorSize
}

/** Bytes of a cluster. */
export function clusterSize({ sectorSize, perCluster }: Geometry): number {
  return perCluster * sectorSize
}

/** FAT32 has at least so many clusters; with fewer, readers take it for FAT16. */
const leastClusters = 65_525

/** A size that FAT32 cannot have. */
class FatSizeError extends Error {
  override name = 'FatSizeError'
}

/** How a disk is to be divided, when it matters: bytes of a sector, sectors of a cluster. */
export interface Division {
  sectorSize?: number
  perCluster?: number
}

const isSectorSize = (bytes: number) => [512, 1024, 2048, 4096].includes(bytes)

/** The measures of a new file system of so many bytes. Throws FatSizeError. */
export function geometryFor(bytes: number, label: string, { sectorSize = 512, perCluster }: Division = {}): Geometry {
  if (!isSectorSize(sectorSize)) throw new FatSizeError(`FAT32 knows sectors of 512 to 4096 bytes, the disk has ${sectorSize}`)
  return measured(bytes, label, sectorSize, perCluster ?? (bytes <= 260 << 20 ? 1 : Math.max(1, 4096 / sectorSize)))
}

function measured(bytes: number, label: string, sectorSize: number, perCluster: number): Geometry {
  const sectors = Math.floor(bytes / sectorSize)
  const reserved = 32
  const tables = 2
  // Each table needs 4 bytes a cluster and two entries more; growing it leaves fewer clusters, so this converges.
  let tableSectors = 4
  for (;;) {
    const clusters = Math.floor((sectors - reserved - tables * tableSectors) / perCluster)
    const needed = Math.ceil(((clusters + 2) * 4) / sectorSize)
    if (needed <= tableSectors) {
      if (clusters < leastClusters) {
        const least = Math.ceil((leastClusters * (perCluster * sectorSize + 8)) / (1 << 20)) + 1
        throw new FatSizeError(`FAT32 needs ${least} MiB or more here, this is ${Math.floor(bytes / (1 << 20))} MiB`)
      }
      return { sectorSize, sectors, reserved, tables, tableSectors, perCluster, clusters, rootCluster: 2, info: 1, label }
    }
    // Tables of 2 KiB each time keep the clusters behind them aligned to 4 KiB.
    tableSectors = Math.ceil(needed / 4) * 4
  }
}

/** The beginning of the boot sector. `hidden` is where the partition begins on its disk, in sectors. */
export function bootSector(geometry: Geometry, { serial, hidden }: { serial: number; hidden: number }): Uint8Array {
  const sector = Buffer.alloc(headerSize)
  sector.set([0xeb, 0x58, 0x90], 0) // jump over the parameters
  sector.write('ICHOR   ', 3, 'latin1')
  sector.writeUInt16LE(geometry.sectorSize, 11)
  sector[13] = geometry.perCluster
  sector.writeUInt16LE(geometry.reserved, 14)
  sector[16] = geometry.tables
  sector[21] = 0xf8 // a disk that stays
  sector.writeUInt16LE(63, 24) // a geometry nobody uses, but some readers want one
  sector.writeUInt16LE(255, 26)
  sector.writeUInt32LE(hidden >>> 0, 28)
  sector.writeUInt32LE(geometry.sectors, 32)
  sector.writeUInt32LE(geometry.tableSectors, 36)
  sector.writeUInt32LE(geometry.rootCluster, 44)
  sector.writeUInt16LE(geometry.info, 48)
  sector.writeUInt16LE(6, 50) // the copy of this sector
  sector[64] = 0x80
  sector[66] = 0x29
  sector.writeUInt32LE(serial >>> 0, 67)
  sector.write(geometry.label.toUpperCase().padEnd(11).slice(0, 11), 71, 'latin1')
  sector.write('FAT32   ', 82, 'latin1')
  sector.set([0xf4, 0xeb, 0xfd], 90) // whoever starts it stands still
  sector.set([0x55, 0xaa], 510)
  return sector
}

/** Reads a boot sector; throws DecodeError when it is not one of FAT32, or its measures do not fit together. */
export function parseBootSector(bytes: Uint8Array, size: number): Geometry {
  const sector = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const wrong = (offset: number, why: string) => new DecodeError('FAT32 boot sector', offset, why)
  if (sector.length < headerSize) throw wrong(sector.length, 'too short')
  if (sector.readUInt16LE(510) !== 0xaa55) throw wrong(510, 'no signature')
  const sectorSize = sector.readUInt16LE(11)
  if (!isSectorSize(sectorSize)) throw wrong(11, 'sectors are not 512 to 4096 bytes long')
  const perCluster = sector[13] ?? 0
  if (perCluster === 0 || (perCluster & (perCluster - 1)) !== 0) throw wrong(13, 'cluster size is not a power of two')
  const reserved = sector.readUInt16LE(14)
  const tables = sector[16] ?? 0
  const sectors = sector.readUInt32LE(32)
  const tableSectors = sector.readUInt32LE(36)
  const rootCluster = sector.readUInt32LE(44)
  const info = sector.readUInt16LE(48)
  if (reserved === 0 || tables === 0 || tables > 4 || tableSectors === 0) throw wrong(14, 'not FAT32')
  if (sectors * sectorSize > size) throw wrong(32, 'larger than its partition')
  const clusters = Math.floor((sectors - reserved - tables * tableSectors) / perCluster)
  if (clusters < leastClusters || (clusters + 2) * 4 > tableSectors * sectorSize) throw wrong(36, 'tables and clusters do not fit')
  if (rootCluster < 2 || rootCluster > clusters + 1) throw wrong(44, 'root directory lies outside')
  const label = sector.toString('latin1', 71, 82).trimEnd()
  return { sectorSize, sectors, reserved, tables, tableSectors, perCluster, clusters, rootCluster, info: info < reserved ? info : 1, label }
}

/** The beginning of FSInfo: how many clusters are free, which is only a hint to readers. */
export function infoSector(free: number, next: number): Uint8Array {
  const sector = Buffer.alloc(headerSize)
  sector.writeUInt32LE(0x41615252, 0)
  sector.writeUInt32LE(0x61417272, 484)
  sector.writeUInt32LE(free, 488)
  sector.writeUInt32LE(next, 492)
  sector.writeUInt32LE(0xaa550000, 508)
  return sector
}
