/** Puts the system on a disk: partitions, boot loader, the first slot, META. */

import { parameterValues, parseCommandLine } from '../../../wire/command-line.ts'
import { FatVolume, formatFat } from '../../../wire/fat/volume.ts'
import type { Machine } from '../../area.ts'
import { known, readDiskTable, withDevice, writeDiskTable } from '../../block/device.ts'
import { chooseInstallDisk, InstallDiskError } from '../../block/install-disk.ts'
import { DiskOccupied, DiskTooSmall, type LaidOut, layOutDisk } from '../../block/layout.ts'
import { Disk } from '../../block/resources/disk.ts'
import { blockDevices } from '../../block/sysfs.ts'
import { declared } from '../../config/declared.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { findRelease, isOwnRelease, releaseOfMedium } from '../release/find-release.ts'
import { filesFor, type Release, ReleaseError, slotRelease, verifyFiles } from '../release/release.ts'
import type { TaskContext } from '../sequencer.ts'
import { isInstalled, startSource } from '../slots/boot-disk.ts'
import { grub } from '../slots/grub.ts'
import { grubBlocks } from '../slots/grub-core.ts'
import { systemdBoot } from '../slots/systemd-boot.ts'
import { writeFirmwareEntry } from './boot-entry.ts'
import { installPartitions, ownParameters, unfinished } from './layout.ts'
import { type InstallPlan, type InstallWish, planInstall } from './plan.ts'

type Installing = Pick<Machine, 'kernel' | 'store' | 'supervisor' | 'version' | 'log' | 'spawn' | 'meta'>

/** `machine.install` of the configuration in force. */
export function installWish({ store }: Pick<Machine, 'store'>): InstallWish {
  return (declared(store.get(MachineConfig, 'v1alpha1'))?.machine.install ?? {}) as InstallWish
}

/** Why this machine could not be installed as a configuration says, in one line; nothing when it could, or is installed already. */
export async function refuseInstall(
  machine: Pick<Machine, 'kernel' | 'store'>,
  wish: InstallWish | undefined,
): Promise<string | undefined> {
  if (machine.kernel.mode === 'container' || isInstalled(machine)) return undefined
  try {
    await planInstall(machine, wish ?? {})
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

/** Why a disk selector fits no disk of this machine, or several, in one line. */
export function refuseSelector({ store }: Pick<Machine, 'store'>, diskSelector: InstallWish['diskSelector']): string | undefined {
  const disks = store.list(Disk).map(({ metadata: { id }, spec }) => ({ id, spec }))
  if (disks.length === 0) return undefined
  try {
    chooseInstallDisk(disks, { diskSelector })
    return undefined
  } catch (error) {
    if (error instanceof InstallDiskError) return error.message
    throw error
  }
}

/** The task "install": as the configuration in force says. */
export async function installSystem(machine: Installing, { signal, log }: TaskContext): Promise<void> {
  const wish = installWish(machine)
  await installOn(machine, wish, await releaseToInstall(machine, wish, { signal, tell: (message) => log.info(message) }), {
    signal,
    tell: (message) => log.info(message),
  })
}

/** What to install: the image of the configuration, unless the medium carries it, or it cannot be had and the medium carries another. */
export async function releaseToInstall(
  machine: Installing,
  { image }: Pick<InstallWish, 'image'>,
  { signal, tell }: { signal: AbortSignal; tell: (message: string) => void },
): Promise<Release> {
  const own = await releaseOfMedium(machine)
  if (own && (!image || isOwnRelease(machine, image))) return own
  if (!image) throw new ReleaseError('the medium carries no release to install: set machine.install.image')
  try {
    return await findRelease(machine, image, { signal, tell })
  } catch (error) {
    if (!own || !(error instanceof ReleaseError) || !error.message.startsWith('pull ')) throw error
    tell(`${error.message}: installing ${own.manifest.version} of the medium instead`)
    return own
  }
}

let busy = false

/** Installs a release on the disk of a wish. Nothing is written before the release is verified and the disk is found fit. */
export async function installOn(
  machine: Installing,
  wish: InstallWish,
  release: Release,
  { signal, tell }: { signal: AbortSignal; tell: (message: string) => void },
): Promise<InstallPlan> {
  if (busy) throw new ReleaseError('an installation of this machine is under way: wait until it is done')
  busy = true
  try {
    return await installing(machine, wish, release, { signal, tell })
  } finally {
    busy = false
  }
}

async function installing(
  machine: Installing,
  wish: InstallWish,
  release: Release,
  { signal, tell }: { signal: AbortSignal; tell: (message: string) => void },
): Promise<InstallPlan> {
  const plan = await planInstall(machine, wish)
  const kind = plan.firmware === 'uefi' ? 'systemd-boot' : 'grub'
  await verifyFiles(release, filesFor(kind), (name) => tell(`checking ${name}`))
  signal.throwIfAborted()
  const path = plan.disk.spec.dev_path
  tell(`laying out ${path}`)
  const wanted = installPartitions(plan.firmware).map((each) => (each.label === 'META' ? { ...each, label: unfinished } : each))
  const partitions = await layOutDisk(machine, path, { partitions: wanted }, { wipe: plan.wipe })
  const parameters = ownParameters(machine.kernel.files.readTextIfThere('/proc/cmdline') ?? '', wish.extraKernelArgs ?? [])
  tell(`writing ${release.manifest.version} to slot A`)
  for (const partition of partitions.filter(({ label }) => label === 'EFI' || label === 'BOOT')) {
    await writeBootPartition(machine, partition, kind, release, parameters)
  }
  const efi = partitions.find(({ label }) => label === 'EFI')
  if (kind === 'systemd-boot' && efi) tellFirmware(machine, efi, plan.disk.spec.sector_size)
  const meta = partitions.find(({ label }) => label === unfinished)
  if (meta) await machine.meta.use(meta.device)
  // From here on the disk is started from: until everything else is there the medium is.
  if (kind === 'grub') await writeGrubCore(machine, path, partitions, release, wish.legacyBIOSSupport === true)
  else if (efi) await armFirmware(machine, efi, release)
  await finish(machine, path)
  tell(`installed ${release.manifest.version} on ${path}`)
  return plan
}

/** Without the firmware's help the disk starts all the same: the boot loader lies where firmwares look by themselves. */
function tellFirmware({ kernel, log }: Installing, efi: LaidOut, sectorSize: number): void {
  try {
    log.info('the firmware starts this system first', { option: writeFirmwareEntry(kernel.efi, efi, sectorSize) })
  } catch (error) {
    log.warn('the firmware could not be told of this system, it has to find it by itself', { error })
  }
}

async function writeBootPartition(
  { kernel }: Pick<Installing, 'kernel'>,
  { label, device: path, offset }: LaidOut,
  kind: 'systemd-boot' | 'grub',
  release: Release,
  parameters: readonly string[],
): Promise<void> {
  const device = await kernel.block.openDevice(path, { ...known, write: true, exclusive: true })
  try {
    const serial = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0
    const { sectorSize } = device
    await formatFat(device, { label, serial, sectorSize, hidden: offset / sectorSize })
    if (kind === 'grub' && label === 'EFI') return // kept free for a machine that changes to UEFI
    const volume = await FatVolume.open(device)
    const loader = kind === 'grub' ? grub(volume) : systemdBoot(volume)
    await loader.prepare()
    await loader.write('a', await slotRelease(release, parameters))
    await loader.keep('a')
  } finally {
    await device.close()
  }
}

async function armFirmware({ kernel }: Pick<Installing, 'kernel'>, { device: path }: LaidOut, release: Release): Promise<void> {
  await withDevice(kernel.block, path, { ...known, write: true, exclusive: true }, async (device) =>
    systemdBoot(await FatVolume.open(device)).arm?.(release.open, release.size),
  )
}

/**
 * An installation whose last step alone is missing: the power went between the boot loader's coming and META's getting its
 * name. The machine was started from that disk, so all the rest is there; gives the disk.
 */
export async function completeInstallation({ kernel, log }: Pick<Installing, 'kernel' | 'log'>): Promise<string | undefined> {
  // Nothing but an entry of an installed slot says so.
  const parameters = parseCommandLine(kernel.files.readTextIfThere('/proc/cmdline') ?? '')
  const source = startSource(kernel.files)
  if (parameterValues(parameters, 'ichor.slot').length === 0 || !source?.startsWith('/dev/')) return undefined
  const devices = blockDevices(kernel.files)
  const parent = devices.get(source.slice('/dev/'.length))?.parent
  if (!parent || ![...devices.values()].some((each) => each.parent === parent && each.partitionName === unfinished)) return undefined
  log.info('the installation was cut off before its last step, which is made up for', { disk: parent })
  await finish({ kernel, log }, `/dev/${parent}`)
  return parent
}

/** Gives META its name, by which everybody knows that the disk is installed. */
async function finish({ kernel, log }: Pick<Installing, 'kernel' | 'log'>, path: string): Promise<void> {
  const table = await withDevice(kernel.block, path, {}, readDiskTable)
  const meta = table?.partitions.find(({ name }) => name === unfinished)
  if (!table || !meta) throw new Error(`the partition table of "${path}" is not the one that was written`)
  meta.name = 'META'
  try {
    await withDevice(kernel.block, path, { write: true }, (device) => writeDiskTable(device, table))
  } catch (error) {
    const now = await withDevice(kernel.block, path, {}, readDiskTable)
    if (!now?.partitions.some(({ name }) => name === 'META')) throw error
    log.warn('one copy of the partition table could not be written, the next start mends it', { disk: path, error })
  }
  try {
    // The kernel does not tell of names that change: it is asked to tell of the disk.
    kernel.files.writeInto(`/sys/class/block/${path.replace('/dev/', '')}/uevent`, 'change')
  } catch (error) {
    log.warn('the kernel could not be asked to tell of the disk, udevd does when it was written', { disk: path, error })
  }
}

/** Why an installation cannot be done as it is asked for: done again it would be refused again. */
export const isRefusal = (error: unknown): boolean =>
  [InstallDiskError, DiskOccupied, DiskTooSmall, ReleaseError].some((kind) => error instanceof kind)

const activePartition = { offset: 446, value: 0x80 } as const

async function writeGrubCore(
  { kernel }: Pick<Installing, 'kernel'>,
  path: string,
  partitions: readonly LaidOut[],
  release: Release,
  active: boolean,
): Promise<void> {
  const home = partitions.find(({ label }) => label === 'BIOS')
  if (!home) throw new Error(`disk "${path}" was given no BIOS partition`)
  const [boot, core] = await Promise.all(['grub/boot.img', 'grub/core.img'].map((name) => Array.fromAsync(release.open(name))))
  const device = await kernel.block.openDevice(path, { write: true })
  try {
    for (const { offset, bytes } of grubBlocks(Buffer.concat(boot ?? []), Buffer.concat(core ?? []), home)) {
      await device.write(offset, bytes)
      await device.flush()
    }
    // Some firmwares start only from a disk on which a partition is marked so.
    if (active) await device.write(activePartition.offset, Uint8Array.of(activePartition.value))
    await device.flush()
  } finally {
    await device.close()
  }
}
