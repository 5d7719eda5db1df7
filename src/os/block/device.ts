/** Access to the content of block devices. */
import { DecodeError } from '../../wire/decode-error.ts'
import { type GptTable, readTable, type WriteStep, writeTable } from '../../wire/gpt/table.ts'
import { type Probed, probe, probedStretch } from '../../wire/probe/probe.ts'
import { type DeviceView, viewOf } from '../../wire/probe/view.ts'
import type { Kernel } from '../kernel.ts'

/** An open block device. Tests use one in memory. */
export type Device = Awaited<ReturnType<Kernel['block']['openDevice']>>

/** Reads the front and the end of a device, where all signatures are. */
export async function viewDevice(device: Pick<Device, 'size' | 'read'>): Promise<DeviceView> {
  const { size } = device
  const length = Math.min(size, probedStretch)
  const stretch = async (offset: number) => ({ offset, bytes: await device.read(offset, length) })
  return viewOf(size, length < size ? [await stretch(0), await stretch(size - length)] : [await stretch(0)])
}

/** The content of a device: size, sector size and signature. */
export interface Content {
  size: number
  sectorSize: number
  found?: Probed
}

/** Probes an open device. */
export async function contentOf(device: Device): Promise<Content> {
  const { size, sectorSize } = device
  const found = size > 0 ? probe(await viewDevice(device), sectorSize) : undefined
  return { size, sectorSize, ...(found && { found }) }
}

/**
 * Options for opening a partition that must exist. When a writer closes a disk of which no partition is open, udevd makes the
 * kernel re-read the partition table. Meanwhile, for up to seconds on a busy machine, the partitions do not exist.
 */
export const known = { wait: 60_000 } as const

type Opens = Pick<Kernel['block'], 'openDevice'>

/**
 * Opens a device for the duration of `act`. Open it for writing only if something is written: udevd probes a device again
 * whenever a writer closes it.
 */
export async function withDevice<T>(
  block: Opens,
  path: string,
  options: Parameters<Opens['openDevice']>[1],
  run: (device: Device) => Promise<T>,
): Promise<T> {
  const device = await block.openDevice(path, options)
  try {
    return await run(device)
  } finally {
    await device.close()
  }
}

/** Probes a device. If `late` rejects first, the device is closed at once, even during a read. */
export async function probeDevice(block: Opens, path: string, late?: Promise<never>): Promise<Content> {
  const device = await block.openDevice(path, {})
  try {
    return await (late ? Promise.race([contentOf(device), late]) : contentOf(device))
  } finally {
    await device.close()
  }
}

/** Reads the partition table of a device; undefined if there is none or it is unreadable. */
export async function readDiskTable(device: Device): Promise<(GptTable & { damaged?: 'first' | 'backup' }) | undefined> {
  try {
    return readTable(await viewDevice(device), device.sectorSize)
  } catch (error) {
    if (error instanceof DecodeError) return undefined
    throw error
  }
}

/** Writes step by step, flushing each before the next. After a power cut the device has either the old or the new content. */
export async function writeSteps(device: Pick<Device, 'write' | 'flush'>, steps: readonly WriteStep[]): Promise<void> {
  for (const step of steps) {
    for (const { offset, bytes } of step) await device.write(offset, bytes)
    await device.flush()
  }
}

/** Writes a partition table. `fresh` for a disk without a valid one. */
export async function writeDiskTable(device: Device, table: GptTable, { fresh = false } = {}): Promise<void> {
  await writeSteps(device, writeTable(table, { protective: fresh }))
}

/** The device of a partition. After a digit at the end of the disk's name comes a `p`. */
export const partitionPath = (disk: string, index: number): string => `${disk}${/\d$/.test(disk) ? 'p' : ''}${index}`

/** A partition table in the form the kernel is given. */
export const kernelView = ({ sectorSize, partitions }: GptTable) =>
  partitions.map(({ index, first, last }) => ({ index, offset: first * sectorSize, size: (last + 1 - first) * sectorSize }))
