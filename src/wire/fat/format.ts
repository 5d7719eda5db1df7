import type { BlockAccess } from './block-access.ts'
import { labelSlot } from './directory.ts'
import { bootSector, chunk, clusterOffset, clusterSize, type Division, geometryFor, infoSector } from './geometry.ts'

/** Options of a new file system. */
export interface FatFormat extends Division {
  label: string
  serial: number
  /** First sector of its partition on the disk. */
  hidden?: number
}

/** Creates an empty file system, regardless of previous contents. */
export async function formatFat(device: BlockAccess, { label, serial, hidden = 0, ...division }: FatFormat): Promise<void> {
  const geometry = geometryFor(device.size, label, division)
  const { sectorSize } = geometry
  const tables = geometry.tables * geometry.tableSectors * sectorSize
  // The boot sector comes last: until then the device is not recognised as a file system.
  const start = Buffer.alloc(geometry.reserved * sectorSize)
  await device.write(0, start)
  await device.flush()
  for (let at = 0; at < tables; at += chunk) await device.write(start.length + at, new Uint8Array(Math.min(chunk, tables - at)))
  const first = Buffer.alloc(sectorSize)
  for (const [index, value] of [0x0ffffff8, 0x0fffffff, 0x0fffffff].entries()) first.writeUInt32LE(value, index * 4)
  for (let table = 0; table < geometry.tables; table++) await device.write(start.length + table * geometry.tableSectors * sectorSize, first)
  const root = Buffer.alloc(clusterSize(geometry))
  root.set(labelSlot(label))
  await device.write(clusterOffset(geometry, geometry.rootCluster), root)
  await device.flush()
  const info = infoSector(geometry.clusters - 1, 3)
  const boot = bootSector(geometry, { serial, hidden })
  for (const at of [6, 0]) {
    start.set(boot, at * sectorSize)
    start.set(info, (at + geometry.info) * sectorSize)
  }
  await device.write(sectorSize, start.subarray(sectorSize))
  await device.write(0, start.subarray(0, sectorSize))
  await device.flush()
}
