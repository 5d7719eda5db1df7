import { gapSize, growthLimit, widestGap } from '../../../wire/gpt/place.ts'
import { type GptTable, newTable } from '../../../wire/gpt/table.ts'
import { type PartitionType, partitionTypes } from '../../../wire/gpt/types.ts'
import type { Machine } from '../../area.ts'
import { kernelView, probeDevice, readDiskTable, withDevice, writeDiskTable } from '../device.ts'
import { describeContent } from '../disk-content.ts'
import { addPartition, laidOut } from '../layout.ts'
import { mebibyte, prettyBinarySize } from '../sizes.ts'
import { wipeSignatures } from '../wipe.ts'
import type { Config, Found } from './view.ts'

type PartitionSpec = NonNullable<Config['provisioning']['partitionSpec']>
type Parts = Pick<Machine, 'kernel' | 'log'>

/** No disk takes the volume; the message says why not, disk by disk. */
export class NoRoom extends Error {
  override name = 'NoRoom'
}

/** Makes the partition of a volume on the first of these disks that has room. Throws NoRoom. */
export async function provision(parts: Parts, id: string, spec: PartitionSpec, disks: Found['disks']): Promise<void> {
  const reasons: string[] = []
  for (const { spec: disk } of disks) {
    const reason = await tryDisk(parts, id, spec, disk.dev_path)
    if (reason === undefined) return
    reasons.push(`${disk.dev_path} ${reason}`)
  }
  throw new NoRoom(`no disk for volume "${id}": ${reasons.join('; ') || 'its disk selector fits none'}`)
}

/** Why the disk does not take it, undefined when it does. */
async function tryDisk({ kernel: { block }, log }: Parts, id: string, spec: PartitionSpec, path: string): Promise<string | undefined> {
  const { found, size: whole, sectorSize } = await probeDevice(block, path)
  if (found && !found.table) return `holds ${describeContent({ found })}`
  const table: GptTable = found?.table ?? newTable({ size: whole, sectorSize, diskGuid: crypto.randomUUID() })
  // The kernel may be late in telling of a partition that was made a moment ago.
  if (spec.label && table.partitions.some(({ name }) => name === spec.label)) return undefined
  const most = mostOf(spec, whole)
  const gap = widestGap(table)
  if (!gap || gapSize(gap, sectorSize) < spec.minSize) {
    const free = gap ? prettyBinarySize(gapSize(gap, sectorSize)) : 'nothing'
    return `has ${free} free, ${prettyBinarySize(spec.minSize)} are needed`
  }
  if (most < spec.minSize) return `may give ${prettyBinarySize(Math.max(0, most))}, ${prettyBinarySize(spec.minSize)} are needed`
  const partition = addPartition(table, { label: spec.label ?? '', type: typeOf(spec), size: spec.minSize, most })
  if (!partition) return 'has no free entry in its partition table'
  const { offset, size } = laidOut(path, table, partition)
  // Not asked to be alone with it: the system disk is in use.
  await withDevice(block, path, { write: true }, async (device) => {
    // Whatever lay here before must not be taken for the volume.
    await wipeSignatures(device, offset, size)
    await writeDiskTable(device, table, { fresh: !found })
  })
  await block.syncPartitions(path, kernelView(table))
  log.info('partition made', { volume: id, disk: path, partition: partition.index, size: prettyBinarySize(size) })
  return undefined
}

/** Bytes a volume may take on a disk of so many. */
export function mostOf({ maxSize, relativeMaxSize, negativeMaxSize }: PartitionSpec, disk: number): number {
  const most = relativeMaxSize ? Math.floor((disk * relativeMaxSize) / 100) : (maxSize ?? 0)
  if (negativeMaxSize) return disk - most
  return most || Number.MAX_SAFE_INTEGER
}

function typeOf({ typeUUID = '' }: PartitionSpec): PartitionType {
  const [name] = Object.entries(partitionTypes).find(([, guid]) => guid === typeUUID.toLowerCase()) ?? []
  return (name as PartitionType | undefined) ?? 'linux'
}

/** Lets a partition that may grow take what follows it; true when it did. */
export async function growPartition(
  { kernel: { block }, log }: Parts,
  id: string,
  spec: PartitionSpec,
  path: string,
  index: number,
): Promise<boolean> {
  const { found, size: whole } = await probeDevice(block, path)
  const table = found?.table
  const partition = table?.partitions.find((each) => each.index === index)
  if (!table || !partition) return false
  const most = Math.floor(mostOf(spec, whole) / table.sectorSize)
  const last = Math.min(growthLimit(table, index), partition.first + most - 1)
  // Less than a mebibyte is what the end of the disk was rounded by.
  if ((last - partition.last) * table.sectorSize < mebibyte) return false
  partition.last = last
  await withDevice(block, path, { write: true }, (device) => writeDiskTable(device, table))
  await block.syncPartitions(path, kernelView(table))
  log.info('partition grown', { volume: id, size: prettyBinarySize(laidOut(path, table, partition).size) })
  return true
}

/** Makes the damaged copy of a disk's table anew from the one that is whole; true when there was one. */
export async function mendTable({ kernel: { block }, log }: Parts, path: string): Promise<boolean> {
  const table = await withDevice(block, path, {}, readDiskTable)
  if (!table?.damaged) return false
  await withDevice(block, path, { write: true }, (device) => writeDiskTable(device, table))
  log.warn('a copy of the partition table was damaged or not at the end of the disk, and is made anew', { disk: path, copy: table.damaged })
  return true
}
