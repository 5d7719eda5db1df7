/** What is on a block device, as far as this area reads and writes it itself. */
import { DecodeError } from '../../wire/decode-error.ts'
import { type GptTable, readTable, type WriteStep, writeTable } from '../../wire/gpt/table.ts'
import { type Probed, probe, probedStretch } from '../../wire/probe/probe.ts'
import { type DeviceView, viewOf } from '../../wire/probe/view.ts'
import type { Kernel } from '../kernel.ts'

/** An open device, as linux/ gives it; a test gives one in memory. */
export type Device = Awaited<ReturnType<Kernel['block']['openDevice']>>

/** Front and end of a device, where every signature lies. */
export async function viewDevice(device: Pick<Device, 'size' | 'read'>): Promise<DeviceView> {
  const { size } = device
  const length = Math.min(size, probedStretch)
  const stretch = async (offset: number) => ({ offset, bytes: await device.read(offset, length) })
  return viewOf(size, length < size ? [await stretch(0), await stretch(size - length)] : [await stretch(0)])
}

/** What a device holds: size, sectors and signature. */
export interface Content {
  size: number
  sectorSize: number
  found?: Probed
}

/** Looks at a device that is open. */
export async function contentOf(device: Device): Promise<Content> {
  const { size, sectorSize } = device
  const found = size > 0 ? probe(await viewDevice(device), sectorSize) : undefined
  return { size, sectorSize, ...(found && { found }) }
}

/**
 * How a partition is opened that is known to be there. While nobody holds a partition of a disk, udevd has the kernel read the
 * table anew each time a writer lets go of the disk, and for a moment, on a busy machine for seconds, none of its
 * partitions is there.
 */
export const known = { wait: 60_000 } as const

type Opens = Pick<Kernel['block'], 'openDevice'>

/**
 * Opens a device for as long as it is needed. For writing only where something is written: udevd looks at a device anew
 * whenever one who could have written to it lets go.
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

/** What is on a device. One that is still open when `late` rejects is closed at once, whatever it is busy with. */
export async function probeDevice(block: Opens, path: string, late?: Promise<never>): Promise<Content> {
  const device = await block.openDevice(path, {})
  try {
    return await (late ? Promise.race([contentOf(device), late]) : contentOf(device))
  } finally {
    await device.close()
  }
}

/** The partition table of a device; undefined where there is none that can be read. */
export async function readDiskTable(device: Device): Promise<(GptTable & { damaged?: 'first' | 'backup' }) | undefined> {
  try {
    return readTable(await viewDevice(device), device.sectorSize)
  } catch (error) {
    if (error instanceof DecodeError) return undefined
    throw error
  }
}

/** Writes in steps, each on the medium before the next begins: a power cut leaves what was before or what comes after. */
export async function writeSteps(device: Pick<Device, 'write' | 'flush'>, steps: readonly WriteStep[]): Promise<void> {
  for (const step of steps) {
    for (const { offset, bytes } of step) await device.write(offset, bytes)
    await device.flush()
  }
}

/** Writes a partition table; `fresh` for a disk that had none, or none that counts. */
export async function writeDiskTable(device: Device, table: GptTable, { fresh = false } = {}): Promise<void> {
  await writeSteps(device, writeTable(table, { protective: fresh }))
}

/** The device of a partition: a disk whose name ends with a digit has a p between. */
export const partitionPath = (disk: string, index: number): string => `${disk}${/\d$/.test(disk) ? 'p' : ''}${index}`

/** What the kernel is told of the partitions of a table. */
export const kernelView = ({ sectorSize, partitions }: GptTable) =>
  partitions.map(({ index, first, last }) => ({ index, offset: first * sectorSize, size: (last + 1 - first) * sectorSize }))
