/** The requested virtual machines, from the flags of `cluster create qemu`. */

import type { MachinesRecord } from '../../../node-supervisor/layout.ts'
import { type DiskBus, diskBuses } from '../../../node-supervisor/machine/qemu-arguments.ts'
import { UsageError } from '../../failure.ts'
import { parseMemory } from '../plan/quantity.ts'

/** Virtual machines as requested. */
export interface MachinesRequest {
  images: string
  start: MachinesRecord['start']
  firmware: MachinesRecord['firmware']
  secureBoot: boolean
  disks: { bus: DiskBus; size: number }[]
}

/** Every preset: what a machine starts from, and how far it is taken. */
export const presets = ['iso', 'iso-secureboot', 'pxe', 'disk-image', 'maintenance'] as const
export type Preset = (typeof presets)[number]

const starts: Readonly<Record<Exclude<Preset, 'maintenance'>, MachinesRecord['start']>> = {
  iso: 'iso',
  'iso-secureboot': 'iso',
  pxe: 'pxe',
  'disk-image': 'disk-image',
}
const gib = 1024 ** 3
/** What the system's own partitions take, with something left for what runs. */
const smallestDisk = 6 * gib
const mostDisks = 8

/** Reads the presets; those that contradict each other are refused. */
export function readPresets(wanted: readonly string[]): Pick<MachinesRequest, 'start' | 'secureBoot'> & { unconfigured: boolean } {
  for (const preset of wanted)
    if (!(presets as readonly string[]).includes(preset))
      throw new UsageError(`--presets "${preset}": there are ${presets.join(', ')}; several are separated by commas`)
  const chosen = wanted.filter((preset): preset is Exclude<Preset, 'maintenance'> => preset !== 'maintenance')
  if (chosen.length > 1) throw new UsageError(`--presets: ${chosen.join(' and ')} contradict each other: a machine starts from one thing`)
  const [preset = 'iso'] = chosen
  return { start: starts[preset], secureBoot: preset === 'iso-secureboot', unconfigured: wanted.includes('maintenance') }
}

/** Reads `virtio:10GiB,nvme:6GiB`; the first disk is the one that is installed to. */
export function parseDisks(text: string): MachinesRequest['disks'] {
  const disks = text.split(',').map((part) => {
    const [bus = '', size = '', rest] = part.trim().split(':')
    if (!(diskBuses as readonly string[]).includes(bus) || bus === 'usb' || size === '' || rest !== undefined) {
      const known = diskBuses.filter((each) => each !== 'usb').join(', ')
      throw new UsageError(`--disks "${part.trim()}": write driver:size, such as virtio:10GiB; drivers are ${known}`)
    }
    return { bus: bus as DiskBus, size: parseMemory(size, '--disks') }
  })
  if (disks.length > mostDisks)
    throw new UsageError(`--disks: ${disks.length} disks are more than the ${mostDisks} that a machine has room for`)
  if ((disks[0]?.size ?? 0) < smallestDisk) throw new UsageError('--disks: the first disk is installed to and needs at least 6GiB')
  return disks.map(({ bus, size }) => ({ bus, size: Math.ceil(size / 4096) * 4096 }))
}

/** The first disk as the machine's kernel names it. */
export function installDisk([first]: MachinesRequest['disks']): string {
  if (first?.bus === 'virtio') return '/dev/vda'
  return first?.bus === 'nvme' ? '/dev/nvme0n1' : '/dev/sda'
}
