import { gapSize, growthLimit, widestGap } from '../../../wire/gpt/place.ts'
import { type GptTable, newTable } from '../../../wire/gpt/table.ts'
import { type PartitionType, partitionTypes } from '../../../wire/gpt/types.ts'
import type { Machine } from '../../area.ts'
import { kernelView, probeDevice, readDiskTable, withDevice, writeDiskTable } from '../device.ts'
import { describeContent } from '../disk-content.ts'
import { addPartition, laidOut } from '../layout.ts'
import { mebibyte, prettyBinarySize } from '../sizes.ts'
import { wipeSignatures } from '../wipe.ts'
import { wipeCommand } from './prepare.ts'
import type { Config, Found } from './view.ts'

type PartitionSpec = NonNullable<Config['provisioning']['partitionSpec']>
type Dependencies = Pick<Machine, 'kernel' | 'log'>

/** No disk can hold the volume. The message has the reason for each disk. */
export class NoRoom extends Error {
  override name = 'NoRoom'
}

/** Creates the partition of a volume on the first disk with enough space. Throws NoRoom. */
export async function provision(deps: Dependencies, id: string, spec: PartitionSpec, disks: Found['disks']): Promise<void> {
  const reasons: string[] = []
  for (const { spec: disk } of disks) {
    const reason = await tryDisk(deps, id, spec, disk.dev_path)
    if (reason === undefined) return
    reasons.push(`${disk.dev_path} ${reason}`)
  }
  throw new NoRoom(`no disk for volume "${id}": ${reasons.join('; ') || 'its disk selector matches none'}`)
}

/** Creates the partition. Returns why the disk cannot hold it, undefined on success. */
async function tryDisk(
  { kernel: { block }, log }: Dependencies,
  id: string,
  spec: PartitionSpec,
  path: string,
): Promise<string | undefined> {
  if (/^\/dev\/dm-\d/.test(path)) return 'is a logical volume or another mapping, which takes no partitions: set volumeType: disk'
  const { found, size: whole, sectorSize } = await probeDevice(block, path)
  if (found && !found.table) return `holds ${describeContent({ found })} (to give it up: ${wipeCommand(path)})`
  const table: GptTable = found?.table ?? newTable({ size: whole, sectorSize, diskGuid: crypto.randomUUID() })
  // A partition created a moment ago may not have been reported by the kernel yet.
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
  // Not opened exclusively: the system disk is in use.
  await withDevice(block, path, { write: true }, async (device) => {
    // Old signatures in this space must not be taken for the volume.
    await wipeSignatures(device, offset, size)
    await writeDiskTable(device, table, { fresh: !found })
  })
  await block.syncPartitions(path, kernelView(table))
  log.info('partition created', { volume: id, disk: path, partition: partition.index, size: prettyBinarySize(size) })
  return undefined
}

/** Maximum bytes of a volume on a disk of this size. */
export function mostOf({ maxSize, relativeMaxSize, negativeMaxSize }: PartitionSpec, disk: number): number {
  const most = relativeMaxSize ? Math.floor((disk * relativeMaxSize) / 100) : (maxSize ?? 0)
  if (negativeMaxSize) return disk - most
  return most || Number.MAX_SAFE_INTEGER
}

function typeOf({ typeUUID = '' }: PartitionSpec): PartitionType {
  const [name] = Object.entries(partitionTypes).find(([, guid]) => guid === typeUUID.toLowerCase()) ?? []
  return (name as PartitionType | undefined) ?? 'linux'
}

/** Grows a partition into the free space after it, if configured. Returns true if it grew. */
export async function growPartition(
  { kernel: { block }, log }: Dependencies,
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
  // A difference below one mebibyte comes from the alignment of the disk's end.
  if ((last - partition.last) * table.sectorSize < mebibyte) return false
  partition.last = last
  await withDevice(block, path, { write: true }, (device) => writeDiskTable(device, table))
  await block.syncPartitions(path, kernelView(table))
  log.info('partition grown', { volume: id, size: prettyBinarySize(laidOut(path, table, partition).size) })
  return true
}

/** Restores the damaged copy of a disk's partition table from the intact one. Returns true if a copy was damaged. */
export async function mendTable({ kernel: { block }, log }: Dependencies, path: string): Promise<boolean> {
  const table = await withDevice(block, path, {}, readDiskTable)
  if (!table?.damaged) return false
  await withDevice(block, path, { write: true }, (device) => writeDiskTable(device, table))
  log.warn('partition table copy damaged or misplaced, restoring it', { disk: path, copy: table.damaged })
  return true
}
