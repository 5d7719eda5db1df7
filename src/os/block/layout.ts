/**
 * Partitions a disk: writes a new partition table with empty, formatted partitions. After a power cut the disk has its old
 * content, an empty table, or the new table over cleared partitions, never a mixture.
 */
import type { StatusName } from '../../rpc/status.ts'
import { apiStatus } from '../../wire/api-status.ts'
import type { GptPartition } from '../../wire/gpt/entries.ts'
import { freeIndex, gapSize, gaps } from '../../wire/gpt/place.ts'
import { type GptTable, newTable } from '../../wire/gpt/table.ts'
import { type PartitionType, partitionTypes } from '../../wire/gpt/types.ts'
import type { Machine } from '../area.ts'
import { contentOf, type Device, kernelView, partitionPath, withDevice, writeDiskTable } from './device.ts'
import { type DiskContent, describeContent } from './disk-content.ts'
import { type Format, format } from './format.ts'
import { prettyBinarySize } from './sizes.ts'
import { wipeSignatures } from './wipe.ts'

/** A partition to create. */
export interface PlannedPartition {
  label: string
  type: PartitionType
  /** Bytes; the remaining space if undefined. */
  size?: number
  format?: Format
}

/** The partitions of a disk, in order. */
export interface DiskPlan {
  partitions: readonly PlannedPartition[]
}

/** A created partition. Sizes in bytes. */
export interface LaidOut {
  label: string
  index: number
  device: string
  offset: number
  size: number
  uuid: string
}

/** The disk is not empty, and overwriting was not requested. */
export class DiskOccupied extends Error {
  override name = 'DiskOccupied'

  get [apiStatus](): StatusName {
    return 'FailedPrecondition'
  }
}

/** The plan does not fit on the disk. */
export class DiskTooSmall extends Error {
  override name = 'DiskTooSmall'

  get [apiStatus](): StatusName {
    return 'InvalidArgument'
  }
}

/** Computes the layout of a disk without writing it. */
export function planDisk(
  disk: { path: string; size: number; sectorSize: number },
  plan: DiskPlan,
): { table: GptTable; partitions: LaidOut[] } {
  const table = newTable({ ...disk, diskGuid: crypto.randomUUID() })
  const partitions = plan.partitions.map((planned) => {
    const partition = addPartition(table, planned)
    if (!partition) {
      const wanted = plan.partitions.map(({ label, size }) => `${label} ${size === undefined ? 'the rest' : prettyBinarySize(size)}`)
      throw new DiskTooSmall(`lay out "${disk.path}": its ${prettyBinarySize(disk.size)} are too small for ${wanted.join(', ')}`)
    }
    return laidOut(disk.path, table, partition)
  })
  return { table, partitions }
}

/** Adds a partition at the first fitting gap. Without a size, or with `most`, it takes the widest gap. Undefined if nothing fits. */
export function addPartition(
  table: GptTable,
  { label, type, size, most }: Pick<PlannedPartition, 'label' | 'type' | 'size'> & { most?: number },
): GptPartition | undefined {
  const index = freeIndex(table)
  const { sectorSize } = table
  const least = Math.ceil((size ?? 1) / sectorSize)
  const free = gaps(table).filter((gap) => gap.last + 1 - gap.first >= least)
  const fixed = size !== undefined && most === undefined
  const gap = fixed ? free[0] : free.sort((a, b) => gapSize(b, sectorSize) - gapSize(a, sectorSize))[0]
  if (index === undefined || !gap) return undefined
  const sectors = fixed
    ? least
    : Math.min(gap.last + 1 - gap.first, most === undefined ? Number.MAX_SAFE_INTEGER : Math.floor(most / sectorSize))
  const partition = {
    index,
    type: partitionTypes[type],
    guid: crypto.randomUUID(),
    first: gap.first,
    last: gap.first + Math.max(sectors, least) - 1,
    attributes: 0n,
    name: label,
  }
  table.partitions.push(partition)
  return partition
}

/** Converts a partition of a table. */
export const laidOut = (disk: string, { sectorSize }: GptTable, { index, guid, first, last, name }: GptPartition): LaidOut => ({
  label: name,
  index,
  device: partitionPath(disk, index),
  offset: first * sectorSize,
  size: (last + 1 - first) * sectorSize,
  uuid: guid,
})

/** Throws DiskOccupied, with the disk's content, unless the disk is empty. */
export function refuseOccupied(path: string, content: DiskContent): void {
  if (content.found)
    throw new DiskOccupied(
      `lay out "${path}": it holds ${describeContent(content)}; nothing was changed, it is overwritten only if the configuration sets "wipe"`,
    )
}

/** Partitions a disk. Throws DiskOccupied or DiskTooSmall before anything is written, EBUSY while the disk is in use. */
export async function layOutDisk(
  machine: Pick<Machine, 'kernel' | 'spawn' | 'log'>,
  path: string,
  plan: DiskPlan,
  { wipe }: { wipe: boolean },
): Promise<LaidOut[]> {
  const { block } = machine.kernel
  const planned = await withDevice(block, path, { write: true, exclusive: true }, async (device) => {
    const content = await contentOf(device)
    if (!wipe) refuseOccupied(path, content)
    const planned = planDisk({ path, size: device.size, sectorSize: device.sectorSize }, plan)
    machine.log.info('partitioning disk', { disk: path, partitions: planned.partitions.map(({ label }) => label).join(' ') })
    await writeLayout(device, planned, content.found !== undefined)
    return planned
  })
  await block.syncPartitions(path, kernelView(planned.table))
  for (const [index, partition] of planned.partitions.entries()) {
    const wanted = plan.partitions[index]?.format
    if (wanted) await format(machine, partition.device, wanted, partition)
  }
  return planned.partitions
}

/** Writes a layout. The previous table is removed first, as a whole. */
export async function writeLayout(device: Device, { table, partitions }: ReturnType<typeof planDisk>, occupied: boolean): Promise<void> {
  if (occupied) await writeDiskTable(device, { ...table, partitions: [] }, { fresh: true })
  await clearAround(device, table)
  for (const { offset, size } of partitions) await wipeSignatures(device, offset, size)
  const entriesAt = occupied ? 2 : undefined
  await writeDiskTable(device, { ...table, entriesAt }, { fresh: !occupied })
}

/** Clears the space outside of table and partitions, where stale signatures would take precedence over the table. */
async function clearAround(device: Device, { sectorSize, sectors, firstUsable, lastUsable, entries }: GptTable): Promise<void> {
  const array = Math.ceil((entries * 128) / sectorSize)
  const behindArray = (2 + array) * sectorSize
  await device.write(behindArray, new Uint8Array(firstUsable * sectorSize - behindArray))
  const end = (lastUsable + 1) * sectorSize
  const length = Math.min(1 << 20, end - firstUsable * sectorSize)
  await device.write(end - length, new Uint8Array(length))
  const rest = device.size - sectors * sectorSize
  if (rest > 0) await device.write(sectors * sectorSize, new Uint8Array(rest))
  await device.flush()
}
