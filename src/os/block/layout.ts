/**
 * Laying out a disk: a partition table made anew, every partition in its place, empty and formatted. A power cut on the way
 * leaves what was there, an empty table, or the new table over cleared partitions, never a mixture.
 */
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

/** A partition as it is to be. */
export interface PlannedPartition {
  label: string
  type: PartitionType
  /** Bytes; what is left of the disk when it is not given. */
  size?: number
  format?: Format
}

/** The partitions of a disk, in order. */
export interface DiskPlan {
  partitions: readonly PlannedPartition[]
}

/** A partition as it is. Bytes. */
export interface LaidOut {
  label: string
  index: number
  device: string
  offset: number
  size: number
  uuid: string
}

/** The disk holds something, and nobody said that it may go. */
export class DiskOccupied extends Error {
  override name = 'DiskOccupied'
}

/** The disk has no room for the plan. */
export class DiskTooSmall extends Error {
  override name = 'DiskTooSmall'
}

/** What the plan comes to on a disk, without writing anything. */
export function planDisk(
  disk: { path: string; size: number; sectorSize: number },
  plan: DiskPlan,
): { table: GptTable; partitions: LaidOut[] } {
  const table = newTable({ ...disk, diskGuid: crypto.randomUUID() })
  const partitions = plan.partitions.map((planned) => {
    const partition = addPartition(table, planned)
    if (!partition) {
      const wanted = plan.partitions.map(({ label, size }) => `${label} ${size === undefined ? 'the rest' : prettyBinarySize(size)}`)
      throw new DiskTooSmall(`lay out "${disk.path}": its ${prettyBinarySize(disk.size)} have no room for ${wanted.join(', ')}`)
    }
    return laidOut(disk.path, table, partition)
  })
  return { table, partitions }
}

/** Adds a partition where it fits first; a size that is not given, or `most`, takes what the widest gap has. Undefined where nothing fits. */
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

/** A partition of a table as others see it. */
export const laidOut = (disk: string, { sectorSize }: GptTable, { index, guid, first, last, name }: GptPartition): LaidOut => ({
  label: name,
  index,
  device: partitionPath(disk, index),
  offset: first * sectorSize,
  size: (last + 1 - first) * sectorSize,
  uuid: guid,
})

/** Throws DiskOccupied, with what is there, when a disk holds anything. */
export function refuseOccupied(path: string, content: DiskContent): void {
  if (content.found)
    throw new DiskOccupied(
      `lay out "${path}": it holds ${describeContent(content)}; nothing was changed, it is overwritten only when the configuration says "wipe"`,
    )
}

/** Lays out a disk. Throws DiskOccupied or DiskTooSmall before anything is written; EBUSY while it is in use. */
export async function layOutDisk(
  parts: Pick<Machine, 'kernel' | 'spawn' | 'log'>,
  path: string,
  plan: DiskPlan,
  { wipe }: { wipe: boolean },
): Promise<LaidOut[]> {
  const { block } = parts.kernel
  const planned = await withDevice(block, path, { write: true, exclusive: true }, async (device) => {
    const content = await contentOf(device)
    if (!wipe) refuseOccupied(path, content)
    const planned = planDisk({ path, size: device.size, sectorSize: device.sectorSize }, plan)
    parts.log.info('laying out disk', { disk: path, partitions: planned.partitions.map(({ label }) => label).join(' ') })
    await writeLayout(device, planned, content.found !== undefined)
    return planned
  })
  await block.syncPartitions(path, kernelView(planned.table))
  for (const [index, { format: wanted }] of plan.partitions.entries())
    if (wanted) await format(parts, planned.partitions[index]!.device, wanted, planned.partitions[index])
  return planned.partitions
}

/** The writes of a layout: what was there goes first, as a whole. */
export async function writeLayout(device: Device, { table, partitions }: ReturnType<typeof planDisk>, occupied: boolean): Promise<void> {
  if (occupied) await writeDiskTable(device, { ...table, partitions: [] }, { fresh: true })
  await clearAround(device, table)
  for (const { offset, size } of partitions) await wipeSignatures(device, offset, size)
  const entriesAt = occupied ? 2 : undefined
  await writeDiskTable(device, { ...table, entriesAt }, { fresh: !occupied })
}

/** Clears what is neither table nor partition: signatures of old that would be found before the table. */
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
