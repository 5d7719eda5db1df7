/** Installs the system on a disk: partitions, boot loader, the first slot, META. */

import { parameterValues, parseCommandLine } from '../../../wire/command-line.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { formatFat } from '../../../wire/fat/format.ts'
import { FatVolume } from '../../../wire/fat/volume.ts'
import type { Machine } from '../../area.ts'
import type { LaidOut } from '../../block/public.ts'
import {
  blockDevices,
  chooseInstallDisk,
  DiskOccupied,
  DiskTooSmall,
  InstallDiskError,
  known,
  layOutDisk,
  readDiskTable,
  withDevice,
  writeDiskTable,
} from '../../block/public.ts'
import { Disk } from '../../block/resources/disk.ts'
import { declared } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { findRelease, isOwnRelease, releaseOfMedium } from '../release/find-release.ts'
import { filesFor, type Release, ReleaseError, ReleaseUnavailable, slotRelease, verifyFiles } from '../release/release.ts'
import type { TaskContext } from '../sequencer.ts'
import { isInstalled, startSource } from '../slots/boot-disk.ts'
import { bootAlways } from '../slots/firmware.ts'
import { Grub } from '../slots/grub.ts'
import { grubBlocks } from '../slots/grub-core.ts'
import { firmwarePath, loaderFile } from '../slots/loader-renewal.ts'
import { SystemdBoot } from '../slots/systemd-boot.ts'
import type { Writing } from '../system-changes.ts'
import { installPartitions, ownParameters, unfinished } from './layout.ts'
import { type InstallPlan, type InstallSettings, planInstall } from './plan.ts'

type Installing = Pick<Machine, 'kernel' | 'store' | 'supervisor' | 'version' | 'log' | 'spawn' | 'meta' | 'systemChanges'>

/** `machine.install` of the active configuration. */
export function installSettings({ store }: Pick<Machine, 'store'>): InstallSettings {
  return declared(store.get(MachineConfig, 'v1alpha1'))?.machine.install ?? {}
}

/** Why this machine cannot be installed as configured, in one line; undefined if it can, or is installed already. */
export async function refuseInstall(
  machine: Pick<Machine, 'kernel' | 'store'>,
  settings: InstallSettings | undefined,
): Promise<string | undefined> {
  if (machine.kernel.mode === 'container' || isInstalled(machine)) return undefined
  try {
    await planInstall(machine, settings ?? {})
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

/** Why a disk selector does not match exactly one disk of this machine, in one line; undefined if it does. */
export function refuseSelector({ store }: Pick<Machine, 'store'>, diskSelector: InstallSettings['diskSelector']): string | undefined {
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

/** The task "install": installs as configured. */
export async function installSystem(machine: Installing, { signal, log }: TaskContext): Promise<void> {
  const settings = installSettings(machine)
  await installOn(machine, settings, await releaseToInstall(machine, settings, { signal, report: (message) => log.info(message) }), {
    signal,
    report: (message) => log.info(message),
  })
}

/** The release to install: the configured image, or the release of the boot medium if that is the same or the image is unavailable. */
export async function releaseToInstall(
  machine: Installing,
  { image }: Pick<InstallSettings, 'image'>,
  { signal, report }: { signal: AbortSignal; report: (message: string) => void },
): Promise<Release> {
  const own = await releaseOfMedium(machine)
  if (own && (!image || isOwnRelease(machine, image))) return own
  if (!image) throw new ReleaseError('the medium carries no release to install: set machine.install.image')
  try {
    return await findRelease(machine, image, { signal, report })
  } catch (error) {
    if (!own || !(error instanceof ReleaseUnavailable)) throw error
    report(`${error.message}: installing ${own.manifest.version} of the medium instead`)
    return own
  }
}

/** Installs a release on the selected disk. Nothing is written before the release is verified and the disk is checked. */
export function installOn(
  machine: Installing,
  settings: InstallSettings,
  release: Release,
  { signal, report }: { signal: AbortSignal; report: (message: string) => void },
): Promise<InstallPlan> {
  const refusal = (running: Writing) => new ReleaseError(`an ${running} of this machine is in progress: wait until it is done`)
  return machine.systemChanges.exclusively('installation', () => installing(machine, settings, release, { signal, report }), refusal)
}

async function installing(
  machine: Installing,
  settings: InstallSettings,
  release: Release,
  { signal, report }: { signal: AbortSignal; report: (message: string) => void },
): Promise<InstallPlan> {
  const plan = await planInstall(machine, settings)
  const kind = plan.firmware === 'uefi' ? 'systemd-boot' : 'grub'
  await verifyFiles(release, filesFor(kind), (name) => report(`checking ${name}`))
  signal.throwIfAborted()
  const path = plan.disk.spec.dev_path
  report(`laying out ${path}`)
  const wanted = installPartitions(plan.firmware).map((each) => (each.label === 'META' ? { ...each, label: unfinished } : each))
  const partitions = await layOutDisk(machine, path, { partitions: wanted }, { wipe: plan.wipe })
  const parameters = ownParameters(machine.kernel.files.readTextIfThere('/proc/cmdline') ?? '', settings.extraKernelArgs ?? [])
  report(`writing ${release.manifest.version} to slot A`)
  for (const partition of partitions.filter(({ label }) => label === 'EFI' || label === 'BOOT')) {
    await writeBootPartition(machine, partition, kind, release, parameters)
  }
  const efi = partitions.find(({ label }) => label === 'EFI')
  if (kind === 'systemd-boot' && efi) registerWithFirmware(machine, efi, plan.disk.spec.sector_size)
  const meta = partitions.find(({ label }) => label === unfinished)
  if (meta) await machine.meta.use(meta.device)
  // From here on the firmware boots from the disk; before, from the medium.
  if (kind === 'grub') await writeGrubCore(machine, path, partitions, release, settings.legacyBIOSSupport === true)
  else if (efi) await armFirmware(machine, efi, release)
  await finish(machine, path)
  report(`installed ${release.manifest.version} on ${path}`)
  return plan
}

/** Optional: without a boot option the firmware still finds the boot loader at its default path. */
function registerWithFirmware({ kernel, log }: Installing, efi: LaidOut, sectorSize: number): void {
  try {
    log.info('boot option written', { option: bootAlways(kernel.efi, efi, sectorSize, firmwarePath(loaderFile)) })
  } catch (error) {
    log.warn('write boot option failed, relying on the default boot path', { error })
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
    if (kind === 'grub' && label === 'EFI') return // reserved for a later change to UEFI
    const volume = await FatVolume.open(device)
    const loader = kind === 'grub' ? new Grub(volume) : new SystemdBoot(volume)
    await loader.prepare()
    await loader.write('a', await slotRelease(release, parameters))
    await loader.keep('a')
  } finally {
    await device.close()
  }
}

async function armFirmware({ kernel }: Pick<Installing, 'kernel'>, { device: path }: LaidOut, release: Release): Promise<void> {
  await withDevice(kernel.block, path, { ...known, write: true, exclusive: true }, async (device) =>
    new SystemdBoot(await FatVolume.open(device)).arm(release.open, release.size),
  )
}

/**
 * Completes an installation that lacks only its last step, after a power cut between writing the boot loader and naming META.
 * The machine was booted from that disk, so everything else is complete. Returns the disk.
 */
export async function completeInstallation({ kernel, log }: Pick<Installing, 'kernel' | 'log'>): Promise<string | undefined> {
  // Only the boot entry of an installed slot sets this parameter.
  const parameters = parseCommandLine(kernel.files.readTextIfThere('/proc/cmdline') ?? '')
  const source = startSource(kernel.files)
  if (parameterValues(parameters, 'ichor.slot').length === 0 || !source?.startsWith('/dev/')) return undefined
  const devices = blockDevices(kernel.files)
  const parent = devices.get(source.slice('/dev/'.length))?.parent
  if (!parent || ![...devices.values()].some((each) => each.parent === parent && each.partitionName === unfinished)) return undefined
  log.info('completing interrupted installation', { disk: parent })
  await finish({ kernel, log }, `/dev/${parent}`)
  return parent
}

/** Names META, which marks the disk as installed. */
async function finish({ kernel, log }: Pick<Installing, 'kernel' | 'log'>, path: string): Promise<void> {
  const table = await withDevice(kernel.block, path, {}, readDiskTable)
  const meta = table?.partitions.find(({ name }) => name === unfinished)
  if (!table || !meta) throw new Error(`the partition table of "${path}" differs from the one written`)
  meta.name = 'META'
  try {
    await withDevice(kernel.block, path, { write: true }, (device) => writeDiskTable(device, table))
  } catch (error) {
    const now = await withDevice(kernel.block, path, {}, readDiskTable)
    if (!now?.partitions.some(({ name }) => name === 'META')) throw error
    log.warn('write partition table copy failed, the next boot restores it', { disk: path, error })
  }
  try {
    // The kernel sends no uevent for a changed partition name, so one is requested.
    kernel.files.writeInto(`/sys/class/block/${path.replace('/dev/', '')}/uevent`, 'change')
  } catch (error) {
    log.warn('request uevent of disk failed, udevd triggers one on close', { disk: path, error })
  }
}

/** True for an error that a retry of the same installation would meet again. */
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
    // Some firmwares boot only from a disk with an active partition.
    if (active) await device.write(activePartition.offset, Uint8Array.of(activePartition.value))
    await device.flush()
  } finally {
    await device.close()
  }
}
