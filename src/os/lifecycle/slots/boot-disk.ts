/** Access to the boot loader on the system disk: on BOOT with GRUB, else on EFI. */

import type { StoreView } from '../../../supervise/definition.ts'
import { parameterValues, parseCommandLine } from '../../../wire/command-line.ts'
import { FatVolume } from '../../../wire/fat/volume.ts'
import { known, type LaidOut, laidOut, readDiskTable, withDevice } from '../../block/public.ts'
import { SystemDisk } from '../../block/resources/system-disk.ts'
import type { Kernel } from '../../kernel.ts'
import type { SystemChanges } from '../system-changes.ts'
import { slotOfEntryId } from './boot-entry.ts'
import { type FirmwareVariables, firmwareOf, loaderVendor, SingleStart } from './firmware.ts'
import { Grub } from './grub.ts'
import type { GrubDisk } from './grub-renewal.ts'
import { type BootLoader, type BootState, type Slot, SlotError } from './slot.ts'
import { SystemdBoot } from './systemd-boot.ts'

/** Dependencies for accessing the boot loader. */
export interface BootDiskDependencies {
  readonly kernel: {
    readonly block: Pick<Kernel['block'], 'openDevice'>
    readonly efi: FirmwareVariables
    readonly files: Pick<Kernel['files'], 'readTextIfThere' | 'read' | 'exists'>
  }
  readonly store: Pick<StoreView, 'get'>
}

/** Whether the system is installed on a disk of this machine. */
export function isInstalled({ store }: Pick<BootDiskDependencies, 'store'>): boolean {
  return store.get(SystemDisk, 'system-disk') !== undefined
}

/** The device of the root file system, or `initramfs`, as recorded by stage 0. */
export const startSource = (files: Pick<Kernel['files'], 'readTextIfThere'>): string | undefined =>
  files.readTextIfThere('/run/ichor/source')?.split(' ')[0]?.trim()

/** Whether the machine was booted from the system disk, not from a medium or the network. */
export function startedFromDisk({ kernel: { files }, store }: BootDiskDependencies): boolean {
  const disk = store.get(SystemDisk, 'system-disk')?.spec.devPath
  const source = startSource(files)
  return disk !== undefined && (!source?.startsWith('/dev/') ? source !== 'initramfs' : source.startsWith(disk))
}

/** Runs `work` with the boot loader of the system disk, exclusively. Throws SlotError if there is none. */
export const withBootLoader = <T>(
  deps: BootDiskDependencies & { readonly systemChanges: Pick<SystemChanges, 'inTurn'> },
  work: (loader: BootLoader, running: Slot | undefined) => Promise<T>,
): Promise<T> => deps.systemChanges.inTurn(() => alone(deps, work))

async function alone<T>(deps: BootDiskDependencies, work: (loader: BootLoader, running: Slot | undefined) => Promise<T>): Promise<T> {
  const disk = deps.store.get(SystemDisk, 'system-disk')?.spec.devPath
  if (!disk) throw new SlotError('this machine runs from a medium: it is not installed, install it first')
  const { block } = deps.kernel
  const whole = await block.openDevice(disk)
  let partition: LaidOut | undefined
  let home: LaidOut | undefined
  try {
    const table = await readDiskTable(whole)
    const found = table ? table.partitions.map((each) => laidOut(disk, table, each)) : []
    partition = found.find(({ label }) => label === 'BOOT') ?? found.find(({ label }) => label === 'EFI')
    home = found.find(({ label }) => label === 'BIOS')
  } finally {
    await whole.close()
  }
  if (!partition) throw new SlotError(`disk "${disk}" has neither a BOOT nor an EFI partition: reset the machine and reinstall it`)
  const device = await block.openDevice(partition.device, { ...known, write: true })
  try {
    const volume = await FatVolume.open(device)
    const firmware = firmwareOf(deps) === 'uefi' ? new SingleStart(deps.kernel.efi, partition, device.sectorSize) : undefined
    const loader = partition.label === 'BOOT' ? new Grub(volume, home && grubDisk(block, disk, home)) : new SystemdBoot(volume, firmware)
    return await work(loader, runningSlot(deps, await loader.state()))
  } finally {
    await device.close()
  }
}

/** Each use opens its device: the kernel then reads what is on the medium, because it keeps nothing of a closed partition. */
const grubDisk = (block: Pick<Kernel['block'], 'openDevice'>, disk: string, home: LaidOut): GrubDisk => ({
  home,
  onDisk: (run, write) => withDevice(block, disk, { write }, run),
  onHome: (run, write) => withDevice(block, home.device, { ...known, write }, run),
})

/** The slot this machine was booted from: by kernel parameter, by systemd-boot's variable, or by the hash of its root. */
export function runningSlot(
  { kernel: { files } }: Pick<BootDiskDependencies, 'kernel'>,
  { slots }: Pick<BootState, 'slots'>,
): Slot | undefined {
  const parameter = parameterValues(parseCommandLine(files.readTextIfThere('/proc/cmdline') ?? ''), 'ichor.slot').at(-1)
  if (parameter === 'a' || parameter === 'b') return parameter
  const entry = loaderEntry({ kernel: { files } })
  const selected = entry ? slotOfEntryId(entry) : undefined
  if (selected) return selected
  const root = runningRoot({ kernel: { files } })
  const same = (['a', 'b'] as const).filter((slot) => root !== undefined && slots[slot]?.rootHash === root)
  return same.length === 1 ? same[0] : undefined
}

/** The entry that systemd-boot reports as booted. */
export function loaderEntry({ kernel: { files } }: { kernel: { files: Pick<Kernel['files'], 'exists' | 'read'> } }): string | undefined {
  const variable = `/sys/firmware/efi/efivars/LoaderEntrySelected-${loaderVendor}`
  if (!files.exists(variable)) return undefined
  // Four bytes of attributes, then null-terminated UTF-16.
  return Buffer.from(files.read(variable)).subarray(4).toString('utf16le').split('\0')[0] || undefined
}

/** The hash of the running root file system, as recorded by stage 0. */
export function runningRoot({ kernel: { files } }: { kernel: { files: Pick<Kernel['files'], 'readTextIfThere'> } }): string | undefined {
  return /^[0-9a-f]{64}/.exec(files.readTextIfThere('/run/ichor/root') ?? '')?.[0]
}
