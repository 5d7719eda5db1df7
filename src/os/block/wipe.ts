/** Taking from disks and partitions what is on them. */

import type { GptPartition } from '../../wire/gpt/entries.ts'
import type { Machine } from '../area.ts'
import type { Device } from './device.ts'
import { kernelView, partitionPath, readDiskTable, withDevice, writeDiskTable } from './device.ts'
import { mebibyte } from './sizes.ts'

type Parts = Pick<Machine, 'kernel' | 'log'>

/** Signatures and what a device forgets at once by itself, or every byte. */
export type WipeMethod = 'fast' | 'zeroes'

/** How a device is wiped. */
export interface WipeOptions {
  method?: WipeMethod
  /** Also while it is in use: for the disk the running system lies on. */
  inUse?: boolean
  signal?: AbortSignal
}

/** Clears the front and the end of a stretch of a device, where signatures lie. */
export async function wipeSignatures(device: Pick<Device, 'write' | 'flush'>, offset: number, size: number): Promise<void> {
  const length = Math.min(mebibyte, size)
  const nothing = new Uint8Array(length)
  await device.write(offset, nothing)
  if (size > length) await device.write(offset + size - length, nothing)
  await device.flush()
}

/** Wipes a disk with all its partitions, or a partition. EBUSY while it is in use. */
export async function wipeDevice({ kernel: { block }, log }: Parts, path: string, options: WipeOptions = {}): Promise<void> {
  const { method = 'fast', inUse = false, signal } = options
  log.info('wiping', { device: path, method })
  const parts = await withDevice(block, path, { write: true, exclusive: !inUse }, async (device) => {
    const table = await readDiskTable(device)
    const view = table ? kernelView(table) : []
    // The partitions before the table that leads to them: what is begun again after a power cut finds them still.
    for (const { offset, size } of view) await wipeSignatures(device, offset, size)
    await wipeSignatures(device, 0, device.size)
    return view
  })
  if (method === 'zeroes') await block.zeroOut(path, signal)
  else if (!inUse) await block.discard(path, signal)
  if (parts.length > 0 && !inUse) await block.syncPartitions(path, [])
}

/** Wipes partitions of a disk by their labels; they stay in the table, empty. */
export async function wipeLabels(parts: Parts, disk: string, labels: readonly string[]): Promise<void> {
  for (const { index, name } of await partitionsOf(parts, disk)) {
    if (labels.includes(name)) await wipeDevice(parts, partitionPath(disk, index))
  }
}

/** The partitions of a disk by their table; none where there is no table. */
async function partitionsOf({ kernel: { block } }: Parts, disk: string): Promise<GptPartition[]> {
  return (await withDevice(block, disk, {}, readDiskTable))?.partitions ?? []
}

/** Takes a partition out of the table of its disk. */
export async function dropPartition({ kernel: { block }, log }: Parts, disk: string, index: number): Promise<void> {
  const table = await withDevice(block, disk, {}, readDiskTable)
  if (!table?.partitions.some((each) => each.index === index)) return
  log.info('removing partition', { disk, partition: index })
  const left = { ...table, partitions: table.partitions.filter((each) => each.index !== index) }
  await withDevice(block, disk, { write: true }, (device) => writeDiskTable(device, left))
  await block.syncPartitions(disk, kernelView(left))
}
