/**
 * The layout of a FAT32 file system (Microsoft, "FAT32 File System Specification" 1.03): reserved sectors with the boot sector,
 * two copies of the allocation table, then data clusters, numbered from 2.
 */
import { DecodeError } from '../decode-error.ts'

/** Bytes of the boot sector and of FSInfo that are used, whatever the sector size. */
export const headerSize = 512

/** Table entries from this value on end a chain. */
export const endOfChain = 0x0ffffff8

/** The layout of one file system, in sectors unless noted otherwise. */
export interface Geometry {
  /** Bytes; at least the logical sector size of the disk, or it cannot be mounted. */
  readonly sectorSize: number
  readonly sectors: number
  readonly reserved: number
  readonly tables: number
  readonly tableSectors: number
  readonly perCluster: number
  /** Number of data clusters; they are numbered from 2 to `clusters + 1`. */
  readonly clusters: number
  readonly rootCluster: number
  /** Sector of FSInfo, which stores the count of free clusters. */
  readonly info: number
  readonly label: string
}

/** Byte offset of a cluster. */
export function clusterOffset({ sectorSize, reserved, tables, tableSectors, perCluster }: Geometry, cluster: number): number {
  return (reserved + tables * tableSectors + (cluster - 2) * perCluster) * sectorSize
}

/** Size of a cluster in bytes. */
export function clusterSize({ sectorSize, perCluster }: Geometry): number {
  return perCluster * sectorSize
}

/** The minimum number of clusters of FAT32; with fewer, readers assume FAT16. */
const leastClusters = 65_525

/** A size that FAT32 does not support. */
class FatSizeError extends Error {
  override name = 'FatSizeError'
}

/** Optional layout parameters: bytes per sector, sectors per cluster. */
export interface Division {
  sectorSize?: number
  perCluster?: number
}

const isSectorSize = (bytes: number) => [512, 1024, 2048, 4096].includes(bytes)

/** The layout of a new file system of `bytes`. Throws FatSizeError. */
export function geometryFor(bytes: number, label: string, { sectorSize = 512, perCluster }: Division = {}): Geometry {
  if (!isSectorSize(sectorSize)) throw new FatSizeError(`FAT32 knows sectors of 512 to 4096 bytes, the disk has ${sectorSize}`)
  return measured(bytes, label, sectorSize, perCluster ?? (bytes <= 260 << 20 ? 1 : Math.max(1, 4096 / sectorSize)))
}

function measured(bytes: number, label: string, sectorSize: number, perCluster: number): Geometry {
  const sectors = Math.floor(bytes / sectorSize)
  const reserved = 32
  const tables = 2
  // Each table needs 4 bytes per cluster and two more entries; growing it leaves fewer clusters, so this converges.
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
    // Growing tables in steps of 2 KiB keeps the clusters after them aligned to 4 KiB.
    tableSectors = Math.ceil(needed / 4) * 4
  }
}

/** The start of the boot sector. `hidden` is the first sector of the partition on its disk. */
export function bootSector(geometry: Geometry, { serial, hidden }: { serial: number; hidden: number }): Uint8Array {
  const sector = Buffer.alloc(headerSize)
  sector.set([0xeb, 0x58, 0x90], 0) // jump over the parameters
  sector.write('ICHOR   ', 3, 'latin1')
  sector.writeUInt16LE(geometry.sectorSize, 11)
  sector[13] = geometry.perCluster
  sector.writeUInt16LE(geometry.reserved, 14)
  sector[16] = geometry.tables
  sector[21] = 0xf8 // fixed disk
  sector.writeUInt16LE(63, 24) // an unused disk geometry, which some readers require
  sector.writeUInt16LE(255, 26)
  sector.writeUInt32LE(hidden >>> 0, 28)
  sector.writeUInt32LE(geometry.sectors, 32)
  sector.writeUInt32LE(geometry.tableSectors, 36)
  sector.writeUInt32LE(geometry.rootCluster, 44)
  sector.writeUInt16LE(geometry.info, 48)
  sector.writeUInt16LE(6, 50) // the backup boot sector
  sector[64] = 0x80
  sector[66] = 0x29
  sector.writeUInt32LE(serial >>> 0, 67)
  sector.write(geometry.label.toUpperCase().padEnd(11).slice(0, 11), 71, 'latin1')
  sector.write('FAT32   ', 82, 'latin1')
  sector.set([0xf4, 0xeb, 0xfd], 90) // halts when it is booted
  sector.set([0x55, 0xaa], 510)
  return sector
}

/** Decodes a boot sector; throws DecodeError when it is not FAT32, or its layout is inconsistent. */
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

/** The start of FSInfo: the number of free clusters, which is only a hint. */
export function infoSector(free: number, next: number): Uint8Array {
  const sector = Buffer.alloc(headerSize)
  sector.writeUInt32LE(0x41615252, 0)
  sector.writeUInt32LE(0x61417272, 484)
  sector.writeUInt32LE(free, 488)
  sector.writeUInt32LE(next, 492)
  sector.writeUInt32LE(0xaa550000, 508)
  return sector
}

/** Bytes of one transfer of long contents. */
export const chunk = 1 << 20
