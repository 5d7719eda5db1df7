/** Plans an installation without writing anything. */

import type { Machine } from '../../area.ts'
import type { KnownDisk, LaidOut } from '../../block/public.ts'
import {
  chooseInstallDisk,
  describeDisks,
  InstallDiskError,
  planDisk,
  prettyBinarySize,
  probeDevice,
  refuseOccupied,
} from '../../block/public.ts'
import { Disk } from '../../block/resources/disk.ts'
import type { Kernel } from '../../kernel.ts'
import { firmwareOf } from '../slots/firmware.ts'
import { type Firmware, installPartitions, leastDisk, unfinished } from './layout.ts'

/** The disk settings of `machine.install`. */
export interface InstallSettings {
  readonly disk?: string | undefined
  readonly diskSelector?: Parameters<typeof chooseInstallDisk>[1]['diskSelector']
  readonly wipe?: boolean | null | undefined
  readonly image?: string | undefined
  readonly extraKernelArgs?: readonly string[] | undefined
  readonly legacyBIOSSupport?: boolean | null | undefined
}

/** What an installation would write. */
export interface InstallPlan {
  readonly disk: KnownDisk
  readonly firmware: Firmware
  readonly partitions: readonly LaidOut[]
  readonly wipe: boolean
}

type PlanDependencies = {
  readonly kernel: { readonly block: Pick<Kernel['block'], 'openDevice'>; readonly files: Pick<Kernel['files'], 'exists'> }
} & Pick<Machine, 'store'>

/** Virtual devices of the running system, and arrays: the firmware starts from none of them. */
const ownDevices = /^(loop|dm-|md|zram|ram)\d/

/** All disks with their content; an unreadable disk is listed without. */
export async function knownDisks({ kernel, store }: PlanDependencies): Promise<KnownDisk[]> {
  const disks = store.list(Disk).filter(({ metadata }) => !ownDevices.test(metadata.id))
  return Promise.all(
    disks.map(async ({ metadata: { id }, spec }) => {
      const look = () => probeDevice(kernel.block, spec.dev_path)
      // A failed read may succeed at a second attempt.
      const content = await look()
        .catch(look)
        .catch(() => undefined)
      return { id, spec, ...(content && { content }) }
    }),
  )
}

/** Selects the disk and plans its layout. Throws InstallDiskError, DiskOccupied or DiskTooSmall, each with a one-line message. */
export async function planInstall(machine: PlanDependencies, settings: InstallSettings): Promise<InstallPlan> {
  const disks = await knownDisks(machine)
  const disk = chooseInstallDisk(disks, settings)
  // An interrupted installation leaves nothing worth keeping.
  const cutOff = disk.content?.found?.table?.partitions.some(({ name }) => name === unfinished) === true
  const wipe = settings.wipe === true || cutOff
  if (disk.spec.size < leastDisk) {
    throw new InstallDiskError(
      `install on "${disk.spec.dev_path}": it has ${prettyBinarySize(disk.spec.size)}, ${prettyBinarySize(leastDisk)} are needed; the disks of this machine are: ${describeDisks(disks)}`,
    )
  }
  // An unreadable disk may hold anything.
  if (!wipe && !disk.content)
    throw new InstallDiskError(
      `install on "${disk.spec.dev_path}": its content cannot be read: choose another disk, or set machine.install.wipe to give up what it holds`,
    )
  if (!wipe) refuseOccupied(disk.spec.dev_path, disk.content ?? {})
  const firmware = firmwareOf(machine)
  const { dev_path: path, size, sector_size: sectorSize } = disk.spec
  if (firmware === 'bios' && sectorSize !== 512) {
    throw new InstallDiskError(
      `install on "${path}": its sectors have ${sectorSize} bytes, a BIOS starts only from those of 512: start this machine by UEFI, or choose another disk`,
    )
  }
  const { partitions } = planDisk({ path, size, sectorSize }, { partitions: installPartitions(firmware) })
  return { disk, firmware, partitions, wipe }
}
