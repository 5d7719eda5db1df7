/** Partition layout of the system disk. */
import { mebibyte, type PlannedPartition } from '../../block/public.ts'
import { kernelParameters } from '../kernel-parameters/table.ts'

/** The firmware of a machine. */
export type Firmware = 'uefi' | 'bios'

/** Minimum disk size in bytes, which leaves space for volumes besides the installation. */
export const leastDisk = 6 * 1024 * mebibyte

/** Name of META until everything else is written: a disk counts as installed by the name META. */
export const unfinished = 'INSTALLING'

/** The partitions an installation creates. STATE and EPHEMERAL are created at the first boot from the disk. */
export function installPartitions(firmware: Firmware): PlannedPartition[] {
  const meta: PlannedPartition = { label: 'META', type: 'linux', size: mebibyte }
  if (firmware === 'uefi') return [{ label: 'EFI', type: 'efi', size: 2101 * mebibyte }, meta]
  return [
    { label: 'EFI', type: 'efi', size: 100 * mebibyte },
    { label: 'BIOS', type: 'bios', size: mebibyte },
    { label: 'BOOT', type: 'linux', size: 2000 * mebibyte },
    meta,
  ]
}

/** Parameters of the running kernel that are passed on to the installed one. */
const preserved = new Set([
  'console',
  ...kernelParameters.flatMap(([, parameters]) => parameters.filter(({ kept }) => kept).map(({ name }) => name)),
])

/** Kernel parameters of the installed system in addition to those of its image. */
export function ownParameters(running: string, extra: readonly string[]): string[] {
  const words = running.split(/\s+/).filter((word) => preserved.has(word.split('=')[0] ?? ''))
  return [...new Set([...words, ...extra])]
}
