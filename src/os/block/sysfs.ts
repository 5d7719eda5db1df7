/** Reads block devices from /sys (sysfs(5), Documentation/ABI/stable/sysfs-block). */

import type * as v from 'valibot'
import { failedWith } from '../../wire/errno.ts'
import type { Kernel } from '../kernel.ts'
import { isInternalVolume } from './groups/hidden.ts'
import type { BlockDevice } from './resources/block-device.ts'
import type { Disk } from './resources/disk.ts'
import { prettySize } from './sizes.ts'

/** The file operations used here. */
export type SysFiles = Pick<Kernel['files'], 'list' | 'readlink' | 'readTextIfThere' | 'exists'>

type BlockDeviceSpec = v.InferOutput<(typeof BlockDevice)['schema']>
type DiskSpec = v.InferOutput<(typeof Disk)['schema']>

const folder = '/sys/class/block'
const sector = 512 // sysfs counts in sectors of 512 bytes, whatever the device's sector size

/** Disks and partitions by name. A device that disappears during the read is left out. */
export function blockDevices(files: SysFiles): Map<string, BlockDeviceSpec> {
  const found = new Map<string, BlockDeviceSpec>()
  for (const name of files.list(folder)) {
    const uevent = files.readTextIfThere(`${folder}/${name}/uevent`)
    const link = uevent && linkIfThere(files, `${folder}/${name}`)
    if (!uevent || !link) continue
    const properties = new Map(uevent.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
    const partition = properties.get('DEVTYPE') === 'partition'
    const secondaries = files.exists(`${folder}/${name}/slaves`) ? files.list(`${folder}/${name}/slaves`) : []
    found.set(name, {
      type: properties.get('DEVTYPE') ?? '',
      major: Number(properties.get('MAJOR')),
      minor: Number(properties.get('MINOR')),
      ...(properties.has('PARTNAME') && { partitionName: properties.get('PARTNAME') }),
      ...(properties.has('PARTN') && { partitionNumber: Number(properties.get('PARTN')) }),
      devicePath: link.slice(link.indexOf('/devices/')),
      generation: Number(properties.get('DISKSEQ') ?? 0),
      ...(partition && { parent: link.split('/').at(-2) }),
      ...(secondaries.length > 0 && { secondaries }),
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

/** Some drivers provide the file but fail the read, such as a CD drive without a name. */
function readable(files: SysFiles, path: string): string | undefined {
  try {
    return files.readTextIfThere(path)
  } catch {
    return undefined
  }
}

/** A whole disk; undefined for empty devices (a loop device or drive without a medium), RAM disks and internal logical volumes. */
export function diskOf(files: SysFiles, name: string, device: BlockDeviceSpec): DiskSpec | undefined {
  const text = (path: string) => readable(files, `${folder}/${name}/${path}`)?.trim() || undefined
  const number = (path: string) => Number(text(path) ?? 0)
  // Every disk has these files: a failed read must not look like an empty disk.
  const sure = (path: string) => Number(files.readTextIfThere(`${folder}/${name}/${path}`) ?? 0)
  const size = sure('size') * sector
  if (device.type !== 'disk' || size === 0 || /^z?ram\d/.test(name) || isInternalVolume(files, name)) return undefined
  const hardware = hardwareOf(device.devicePath, name)
  const attributes = {
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
    dev_path: `/dev/${name.replaceAll('!', '/')}`, // sysfs writes a slash in a device's name as an exclamation mark
    size,
    pretty_size: prettySize(size),
    io_size: number('queue/optimal_io_size') || number('queue/minimum_io_size'),
    sector_size: sure('queue/logical_block_size'),
    readonly: sure('ro') === 1,
    cdrom: /^sr\d/.test(name),
    sub_system: folder,
    ...(Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined)) as Partial<DiskSpec>),
  }
}

/** Bus path of the device's controller; undefined for virtual devices. */
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
