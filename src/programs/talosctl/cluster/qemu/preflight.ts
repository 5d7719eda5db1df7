/** What a host needs for virtual machines; each thing that is missing is one line with the way out. */

import { accessSync, constants, existsSync, statfsSync } from 'node:fs'
import type { MachinesRecord } from '../../../node-supervisor/layout.ts'
import { hostFirmware } from '../../../node-supervisor/machine/host-firmware.ts'
import { machineImages } from '../../../node-supervisor/machine/images.ts'
import { UsageError } from '../../failure.ts'

const emulator = 'qemu-system-x86_64'

/** Refuses what cannot work here before anything is made. */
export function checkMachines({ images, start, firmware, secureBoot }: Omit<MachinesRecord, 'accelerator'>): void {
  if (process.platform !== 'linux') throw new UsageError(`virtual machines are made on Linux only, this is ${process.platform}`)
  if (process.geteuid?.() !== 0)
    throw new UsageError('virtual machines on a network of their own need root: run the same command with sudo')
  if (!Bun.which(emulator))
    throw new UsageError(`there is no ${emulator} on this host: install the package "qemu-system-x86" (Debian) or "qemu"`)
  if (firmware === 'uefi' && !hostFirmware(secureBoot))
    throw new UsageError(
      'there is no UEFI for virtual machines on this host: install the package "ovmf" (Debian) or "edk2-ovmf", or add --no-uefi',
    )
  if (secureBoot && firmware !== 'uefi') throw new UsageError('--presets iso-secureboot needs UEFI: leave --no-uefi out')
  try {
    accessSync('/dev/net/tun', constants.R_OK | constants.W_OK)
  } catch {
    throw new UsageError('there is no /dev/net/tun for the machines\' network interfaces: load the module with "modprobe tun"')
  }
  for (const file of needed(images, start))
    if (!existsSync(file)) throw new UsageError(`"${file}" is not there: make it with "./mkimage.sh", or name another folder with --images`)
}

function needed(folder: string, start: MachinesRecord['start']): string[] {
  const images = machineImages(folder)
  if (start === 'iso') return [images.iso]
  if (start === 'disk-image') return [images.disk]
  return [images.kernel, images.initramfs, images.commandLine]
}

/** Whether disks of these sizes may be written full. */
export function checkRoom(state: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(state)
  const free = Number(bavail) * Number(bsize)
  // Disks are files with holes: what an installed node writes at first is about 2 GiB.
  const wanted = Math.min(bytes, 2 * 1024 ** 3)
  if (free < wanted)
    throw new UsageError(
      `"${state}" has ${(free / 1024 ** 3).toFixed(1)} GiB free, which is not enough: make room, or name another folder with --state`,
    )
}
