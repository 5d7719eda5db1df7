/** What an installation would do to this machine, found out without writing anything. */
import type { Machine } from '../../area.ts'
import { probeDevice } from '../../block/device.ts'
import { chooseInstallDisk, describeDisks, InstallDiskError, type KnownDisk } from '../../block/install-disk.ts'
import { type LaidOut, planDisk, refuseOccupied } from '../../block/layout.ts'
import { Disk } from '../../block/resources/disk.ts'
import { prettyBinarySize } from '../../block/sizes.ts'
import type { Kernel } from '../../kernel.ts'
import { type Firmware, installPartitions, leastDisk, unfinished } from './layout.ts'

/** `machine.install`, as far as the disk goes. */
export interface InstallWish {
  readonly disk?: string
  readonly diskSelector?: Parameters<typeof chooseInstallDisk>[1]['diskSelector']
  readonly wipe?: boolean | null
  readonly image?: string
  readonly extraKernelArgs?: readonly string[]
  readonly legacyBIOSSupport?: boolean | null
}

/** What would be written where. */
export interface InstallPlan {
  readonly disk: KnownDisk
  readonly firmware: Firmware
  readonly partitions: readonly LaidOut[]
  readonly wipe: boolean
}

type Parts = {
  readonly kernel: { readonly block: Pick<Kernel['block'], 'openDevice'>; readonly files: Pick<Kernel['files'], 'exists'> }
} & Pick<Machine, 'store'>

/** How this machine was started. */
export function firmwareOf({ kernel: { files } }: { kernel: { files: Pick<Kernel['files'], 'exists'> } }): Firmware {
  return files.exists('/sys/firmware/efi') ? 'uefi' : 'bios'
}

/** Devices that the running system made for itself. */
const ownDevices = /^(loop|dm-|zram|ram)\d/

/** All disks, each with what is on it; one that cannot be read is told without. */
export async function knownDisks({ kernel, store }: Parts): Promise<KnownDisk[]> {
  const disks = store.list(Disk).filter(({ metadata }) => !ownDevices.test(metadata.id))
  return Promise.all(
    disks.map(async ({ metadata: { id }, spec }) => {
      const look = () => probeDevice(kernel.block, spec.dev_path)
      // A disk that fails once may answer when it is asked again.
      const content = await look()
        .catch(look)
        .catch(() => undefined)
      return { id, spec, ...(content && { content }) }
    }),
  )
}

/** Chooses the disk and lays it out on paper. Throws InstallDiskError, DiskOccupied or DiskTooSmall, each in one line. */
export async function planInstall(parts: Parts, wish: InstallWish): Promise<InstallPlan> {
  const disks = await knownDisks(parts)
  const disk = chooseInstallDisk(disks, wish)
  // An installation that was cut off left nothing that anybody would miss.
  const cutOff = disk.content?.found?.table?.partitions.some(({ name }) => name === unfinished) === true
  const wipe = wish.wipe === true || cutOff
  if (disk.spec.size < leastDisk) {
    throw new InstallDiskError(
      `install on "${disk.spec.dev_path}": it has ${prettyBinarySize(disk.spec.size)}, ${prettyBinarySize(leastDisk)} are needed; the disks of this machine are: ${describeDisks(disks)}`,
    )
  }
  // What cannot be read may hold anything.
  if (!wipe && !disk.content)
    throw new InstallDiskError(
      `install on "${disk.spec.dev_path}": what is on it cannot be read: choose another disk, or set machine.install.wipe to give up what it holds`,
    )
  if (!wipe) refuseOccupied(disk.spec.dev_path, disk.content ?? {})
  const firmware = firmwareOf(parts)
  const { dev_path: path, size, sector_size: sectorSize } = disk.spec
  if (firmware === 'bios' && sectorSize !== 512) {
    throw new InstallDiskError(
      `install on "${path}": its sectors have ${sectorSize} bytes, a BIOS starts only from those of 512: start this machine by UEFI, or choose another disk`,
    )
  }
  const { partitions } = planDisk({ path, size, sectorSize }, { partitions: installPartitions(firmware) })
  return { disk, firmware, partitions, wipe }
}
