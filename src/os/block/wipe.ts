/** Wipes disks and partitions. */

import type { GptPartition } from '../../wire/gpt/entries.ts'
import { dataOffset } from '../../wire/luks2/format.ts'
import { isLuks } from '../../wire/luks2/header.ts'
import type { Machine } from '../area.ts'
import type { Device } from './device.ts'
import { kernelView, partitionPath, readDiskTable, withDevice, writeDiskTable } from './device.ts'
import { mebibyte } from './sizes.ts'

type Dependencies = Pick<Machine, 'kernel' | 'log'>

/** `fast` clears signatures and discards the content; `zeroes` overwrites every byte. */
export type WipeMethod = 'fast' | 'zeroes'

/** Options for wiping a device. */
export interface WipeOptions {
  method?: WipeMethod
  /** Wipe even while in use: for the disk of the running system. */
  inUse?: boolean
  signal?: AbortSignal
}

/** Clears the front and the end of a region, where signatures are. Of an encrypted volume the key slots go first: without them nothing opens it. */
export async function wipeSignatures(device: Pick<Device, 'read' | 'write' | 'flush'>, offset: number, size: number): Promise<void> {
  const length = Math.min(mebibyte, size)
  const nothing = new Uint8Array(length)
  if (size >= dataOffset && isLuks(await device.read(offset, 6))) {
    await device.write(offset + length, new Uint8Array(dataOffset - length))
    await device.flush()
  }
  await device.write(offset, nothing)
  if (size > length) await device.write(offset + size - length, nothing)
  await device.flush()
}

/** Wipes a partition, or a disk with all its partitions. Throws EBUSY while in use. */
export async function wipeDevice({ kernel: { block }, log }: Dependencies, path: string, options: WipeOptions = {}): Promise<void> {
  const { method = 'fast', inUse = false, signal } = options
  log.info('wiping device', { device: path, method })
  const deps = await withDevice(block, path, { write: true, exclusive: !inUse }, async (device) => {
    const table = await readDiskTable(device)
    const view = table ? kernelView(table) : []
    // Partitions first, then the table: after a power cut a repeated wipe still finds them.
    for (const { offset, size } of view) await wipeSignatures(device, offset, size)
    await wipeSignatures(device, 0, device.size)
    return view
  })
  if (method === 'zeroes') await block.zeroOut(path, signal)
  else if (!inUse) await block.discard(path, signal)
  if (deps.length > 0 && !inUse) await block.syncPartitions(path, [])
}

/** Wipes partitions of a disk by label. They stay in the table, empty. */
export async function wipeLabels(deps: Dependencies, disk: string, labels: readonly string[]): Promise<void> {
  for (const { index, name } of await partitionsOf(deps, disk)) {
    if (labels.includes(name)) await wipeDevice(deps, partitionPath(disk, index))
  }
}

/** The partitions of a disk; none without a table. */
async function partitionsOf({ kernel: { block } }: Dependencies, disk: string): Promise<GptPartition[]> {
  return (await withDevice(block, disk, {}, readDiskTable))?.partitions ?? []
}

/** Removes a partition from the table of its disk. */
export async function dropPartition({ kernel: { block }, log }: Dependencies, disk: string, index: number): Promise<void> {
  const table = await withDevice(block, disk, {}, readDiskTable)
  if (!table?.partitions.some((each) => each.index === index)) return
  log.info('removing partition', { disk, partition: index })
  const left = { ...table, partitions: table.partitions.filter((each) => each.index !== index) }
  await withDevice(block, disk, { write: true }, (device) => writeDiskTable(device, left))
  await block.syncPartitions(disk, kernelView(left))
}
