import type { Machine } from '../area.ts'
import type { Kernel } from '../kernel.ts'
import { probeDevice } from './device.ts'
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
  device: string,
  { type, label }: Format,
): Promise<void> {
  if (type === 'swap') return writeSwapArea(parts.kernel.block, device, label)
  const { size } = await probeDevice(parts.kernel.block, device)
  await runProgram(parts, [...program(type, label, size), device])
}

function program(type: Exclude<FileSystem, 'swap'>, label: string | undefined, size: number): string[] {
  switch (type) {
    case 'xfs':
      // Labels of XFS have room for twelve characters; the partition has the whole name.
      return [
        'mkfs.xfs',
        '-q',
        '-f',
        ...(size < smallestSupportedXfs ? ['--unsupported'] : []),
        ...(label ? ['-L', label.slice(0, 12)] : []),
      ]
    case 'ext4':
      return ['mkfs.ext4', '-q', '-F', ...(label ? ['-L', label.slice(0, 16)] : [])]
    case 'vfat':
      return ['mkfs.vfat', '-F', '32', ...(label ? ['-n', label.slice(0, 11)] : [])]
  }
}
