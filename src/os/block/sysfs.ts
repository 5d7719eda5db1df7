/** What /sys tells of block devices (sysfs(5), Documentation/ABI/stable/sysfs-block). */

import type * as v from 'valibot'
import { failedWith } from '../../wire/errno.ts'
import type { Kernel } from '../kernel.ts'
import type { BlockDevice } from './resources/block-device.ts'
import type { Disk } from './resources/disk.ts'
import { prettySize } from './sizes.ts'

/** The files and links that are read here. */
export type SysFiles = Pick<Kernel['files'], 'list' | 'readlink' | 'readTextIfThere' | 'exists'>

type BlockDeviceSpec = v.InferOutput<(typeof BlockDevice)['schema']>
type DiskSpec = v.InferOutput<(typeof Disk)['schema']>

const folder = '/sys/class/block'
const sector = 512 // sizes in sysfs are in these, whatever the device's own are

/** Disks and partitions by name. One that vanishes while it is looked at is left out. */
export function blockDevices(files: SysFiles): Map<string, BlockDeviceSpec> {
  const found = new Map<string, BlockDeviceSpec>()
  for (const name of files.list(folder)) {
    const uevent = files.readTextIfThere(`${folder}/${name}/uevent`)
    const link = uevent && linkIfThere(files, `${folder}/${name}`)
    if (!uevent || !link) continue
    const said = new Map(uevent.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
    const partition = said.get('DEVTYPE') === 'partition'
    const secondaries = files.exists(`${folder}/${name}/slaves`) ? files.list(`${folder}/${name}/slaves`) : []
    found.set(name, {
      type: said.get('DEVTYPE') ?? '',
      major: Number(said.get('MAJOR')),
      minor: Number(said.get('MINOR')),
      ...(said.has('PARTNAME') ? { partitionName: said.get('PARTNAME') } : {}),
      ...(said.has('PARTN') ? { partitionNumber: Number(said.get('PARTN')) } : {}),
      devicePath: link.slice(link.indexOf('/devices/')),
      generation: Number(said.get('DISKSEQ') ?? 0),
      ...(partition ? { parent: link.split('/').at(-2) } : {}),
      ...(secondaries.length > 0 ? { secondaries } : {}),
    })
  }
  return found
}

function linkIfThere(files: SysFiles, path: string): string | undefined {
  try {
    return files.readlink(path)
  } catch (error) {
    if (failedWith(error, 'ENOENT', 'ENODEV')) return undefined
    throw error
  }
}

/** Some drivers have the file and no answer: a CD drive without a name, for one. */
function readable(files: SysFiles, path: string): string | undefined {
  try {
    return files.readTextIfThere(path)
  } catch {
    return undefined
  }
}

/** A whole disk; undefined for what holds nothing (an empty loop device or drive) and for memory. */
export function diskOf(files: SysFiles, name: string, device: BlockDeviceSpec): DiskSpec | undefined {
  const text = (path: string) => readable(files, `${folder}/${name}/${path}`)?.trim() || undefined
  const number = (path: string) => Number(text(path) ?? 0)
  // Every disk has these: what cannot be read now is no empty disk without sectors.
  const sure = (path: string) => Number(files.readTextIfThere(`${folder}/${name}/${path}`) ?? 0)
  const size = sure('size') * sector
  if (device.type !== 'disk' || size === 0 || /^z?ram\d/.test(name)) return undefined
  const hardware = hardwareOf(device.devicePath, name)
  const told = {
    model: text('device/model'),
    serial: text('device/serial') ?? text('serial'),
    modalias: text('device/modalias'),
    wwid: text('wwid') ?? text('device/wwid'),
    uuid: text('uuid'),
    bus_path: hardware,
    transport: transportOf(name, device.devicePath),
    secondary_disks: device.secondaries,
    rotational: number('queue/rotational') === 1 ? true : undefined,
  }
  return {
    dev_path: `/dev/${name.replaceAll('!', '/')}`, // a slash in a device's name is an exclamation mark in sysfs
    size,
    pretty_size: prettySize(size),
    io_size: number('queue/optimal_io_size') || number('queue/minimum_io_size'),
    sector_size: sure('queue/logical_block_size'),
    readonly: sure('ro') === 1,
    cdrom: /^sr\d/.test(name),
    sub_system: folder,
    ...(Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined)) as Partial<DiskSpec>),
  }
}

/** Where the hardware hangs: the path of the device's controller. Nothing for what has no hardware. */
function hardwareOf(devicePath: string, name: string): string | undefined {
  const path = devicePath.replace('/devices', '')
  if (path.startsWith('/virtual/')) return undefined
  const device = path.slice(0, path.lastIndexOf(`/${name}`)).replace(/\/block$/, '')
  return device.slice(0, device.lastIndexOf('/')) || undefined
}

function transportOf(name: string, devicePath: string): string | undefined {
  if (name.startsWith('nvme')) return 'nvme'
  if (name.startsWith('mmcblk')) return 'mmc'
  const [, kind] = /\/(virtio|usb|ata|mmc|nvme|rport|session)\d*[/-]/.exec(devicePath) ?? []
  return kind && ({ ata: 'sata', rport: 'fc', session: 'iscsi' }[kind] ?? kind)
}
