import { formatFat } from '../../wire/fat/format.ts'
import type { Machine } from '../area.ts'
import type { Kernel } from '../kernel.ts'
import { known, withDevice } from './device.ts'
import { fileSystemProgram } from './program.ts'
import { mebibyte } from './sizes.ts'
import { writeSwapArea } from './swap-area.ts'

/** File systems that can be created. */
export type FileSystem = 'vfat' | 'xfs' | 'ext4' | 'swap'

/** File system and label of a device. */
export interface Format {
  type: FileSystem
  label?: string | undefined
}

/** xfsprogs creates smaller file systems only with --unsupported. */
const smallestSupportedXfs = 300 * mebibyte

/** Creates a file system, overwriting the device. The caller has checked that no data is lost. */
export async function format(
  machine: Pick<Machine, 'spawn'> & { kernel: { block: Pick<Kernel['block'], 'openDevice'> } },
  path: string,
  { type, label = '' }: Format,
  { offset = 0 }: { offset?: number } = {},
): Promise<void> {
  if (type === 'swap') return writeSwapArea(machine.kernel.block, path, label)
  if (type === 'vfat') return formatVfat(machine.kernel.block, path, label, offset)
  // An open partition does not disappear while mkfs opens it.
  await withDevice(machine.kernel.block, path, known, ({ size }) => fileSystemProgram(machine, [...program(type, label, size), path]))
}

function program(type: 'xfs' | 'ext4', label: string, size: number): string[] {
  if (type === 'ext4') return ['mkfs.ext4', '-q', '-F', ...(label ? ['-L', label.slice(0, 16)] : [])]
  // XFS labels hold 12 characters; the partition label is complete.
  return ['mkfs.xfs', '-q', '-f', ...(size < smallestSupportedXfs ? ['--unsupported'] : []), ...(label ? ['-L', label.slice(0, 12)] : [])]
}

const formatVfat = (block: Pick<Kernel['block'], 'openDevice'>, path: string, label: string, offset: number): Promise<void> =>
  withDevice(block, path, { ...known, write: true, exclusive: true }, async (device) => {
    const [serial = 0] = crypto.getRandomValues(new Uint32Array(1))
    const { sectorSize } = device
    await formatFat(device, { label: label.slice(0, 11) || 'NO NAME', serial, sectorSize, hidden: Math.floor(offset / sectorSize) })
    await device.flush()
  })
