import { formatFat } from '../../wire/fat/volume.ts'
import type { Machine } from '../area.ts'
import type { Kernel } from '../kernel.ts'
import { known, withDevice } from './device.ts'
import { runProgram } from './program.ts'
import { mebibyte } from './sizes.ts'
import { writeSwapArea } from './swap-area.ts'

/** File systems that can be made. */
export type FileSystem = 'vfat' | 'xfs' | 'ext4' | 'swap'

/** What a device is formatted with. */
export interface Format {
  type: FileSystem
  label?: string
}

/** Below this xfsprogs makes a file system only when it is told that it may. */
const smallestSupportedXfs = 300 * mebibyte

/** Makes a file system over whatever is on a device: whoever calls has made sure that nothing is lost. */
export async function format(
  parts: Pick<Machine, 'spawn'> & { kernel: { block: Pick<Kernel['block'], 'openDevice'> } },
  path: string,
  { type, label = '' }: Format,
  { offset = 0 }: { offset?: number } = {},
): Promise<void> {
  if (type === 'swap') return writeSwapArea(parts.kernel.block, path, label)
  if (type === 'vfat') return formatVfat(parts.kernel.block, path, label, offset)
  // A partition that is held does not go away while the program makes its way to it.
  await withDevice(parts.kernel.block, path, known, ({ size }) => runProgram(parts, [...program(type, label, size), path]))
}

function program(type: 'xfs' | 'ext4', label: string, size: number): string[] {
  if (type === 'ext4') return ['mkfs.ext4', '-q', '-F', ...(label ? ['-L', label.slice(0, 16)] : [])]
  // Labels of XFS have room for twelve characters; the partition has the whole name.
  return ['mkfs.xfs', '-q', '-f', ...(size < smallestSupportedXfs ? ['--unsupported'] : []), ...(label ? ['-L', label.slice(0, 12)] : [])]
}

const formatVfat = (block: Pick<Kernel['block'], 'openDevice'>, path: string, label: string, offset: number): Promise<void> =>
  withDevice(block, path, { ...known, write: true, exclusive: true }, async (device) => {
    const serial = crypto.getRandomValues(new Uint32Array(1))[0]!
    const { sectorSize } = device
    await formatFat(device, { label: label.slice(0, 11) || 'NO NAME', serial, sectorSize, hidden: Math.floor(offset / sectorSize) })
    await device.flush()
  })
