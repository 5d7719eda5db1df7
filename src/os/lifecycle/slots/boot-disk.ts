/** The boot loader of this machine's own disk: on BOOT where GRUB starts it, else on EFI. */

import type { StoreView } from '../../../supervise/definition.ts'
import { parameterValues, parseCommandLine } from '../../../wire/command-line.ts'
import { FatVolume } from '../../../wire/fat/volume.ts'
import { known, readDiskTable } from '../../block/device.ts'
import { laidOut } from '../../block/layout.ts'
import { SystemDisk } from '../../block/resources/system-disk.ts'
import type { Kernel } from '../../kernel.ts'
import { slotOfEntryId } from './boot-entry.ts'
import { grub } from './grub.ts'
import { type BootLoader, type BootState, type Slot, SlotError } from './slot.ts'
import { systemdBoot } from './systemd-boot.ts'

/** What looking at the boot loader takes. */
export interface BootDiskParts {
  readonly kernel: {
    readonly block: Pick<Kernel['block'], 'openDevice'>
    readonly files: Pick<Kernel['files'], 'readTextIfThere' | 'read' | 'exists'>
  }
  readonly store: Pick<StoreView, 'get'>
}

/** Whether the system was installed on a disk of this machine. */
export function isInstalled({ store }: Pick<BootDiskParts, 'store'>): boolean {
  return store.get(SystemDisk, 'system-disk') !== undefined
}

/** The device the root file system is on, or `initramfs`, as stage 0 left it. */
export const startSource = (files: Pick<Kernel['files'], 'readTextIfThere'>): string | undefined =>
  files.readTextIfThere('/run/ichor/source')?.split(' ')[0]?.trim()

/** Whether this start was from the system disk, and not from a medium or a network beside it. */
export function startedFromDisk({ kernel: { files }, store }: BootDiskParts): boolean {
  const disk = store.get(SystemDisk, 'system-disk')?.spec.devPath
  const source = startSource(files)
  return disk !== undefined && (!source?.startsWith('/dev/') ? source !== 'initramfs' : source.startsWith(disk))
}

let turn: Promise<unknown> = Promise.resolve()

/** Works with the boot loader of the system disk, one after the other. Throws SlotError where there is none. */
export function withBootLoader<T>(parts: BootDiskParts, work: (loader: BootLoader, running: Slot | undefined) => Promise<T>): Promise<T> {
  const mine = turn.then(() => alone(parts, work))
  turn = mine.catch(() => {})
  return mine
}

async function alone<T>(parts: BootDiskParts, work: (loader: BootLoader, running: Slot | undefined) => Promise<T>): Promise<T> {
  const disk = parts.store.get(SystemDisk, 'system-disk')?.spec.devPath
  if (!disk) throw new SlotError('this machine runs from a medium: nothing is installed on a disk, install it first')
  const { block } = parts.kernel
  const whole = await block.openDevice(disk)
  let partition: { label: string; device: string } | undefined
  try {
    const table = await readDiskTable(whole)
    const found = (table?.partitions ?? []).map((each) => laidOut(disk, table!, each))
    partition = found.find(({ label }) => label === 'BOOT') ?? found.find(({ label }) => label === 'EFI')
  } finally {
    await whole.close()
  }
  if (!partition) throw new SlotError(`disk "${disk}" has neither a BOOT nor an EFI partition: reset the machine and install it anew`)
  const device = await block.openDevice(partition.device, { ...known, write: true })
  try {
    const volume = await FatVolume.open(device)
    const loader = partition.label === 'BOOT' ? grub(volume) : systemdBoot(volume)
    return await work(loader, runningSlot(parts, await loader.state()))
  } finally {
    await device.close()
  }
}

/** The vendor of the variables in which a boot loader says what it did (Boot Loader Interface). */
const loaderVendor = '4a67b082-0a4c-41cf-b6c7-440b29bb8c4f'

/** The slot this machine was started from: as the kernel was told, as systemd-boot says, or by the root it runs from. */
export function runningSlot({ kernel: { files } }: Pick<BootDiskParts, 'kernel'>, { slots }: Pick<BootState, 'slots'>): Slot | undefined {
  const told = parameterValues(parseCommandLine(files.readTextIfThere('/proc/cmdline') ?? ''), 'ichor.slot').at(-1)
  if (told === 'a' || told === 'b') return told
  const entry = loaderEntry({ kernel: { files } })
  const selected = entry ? slotOfEntryId(entry) : undefined
  if (selected) return selected
  const root = runningRoot({ kernel: { files } })
  const same = (['a', 'b'] as const).filter((slot) => root !== undefined && slots[slot]?.rootHash === root)
  return same.length === 1 ? same[0] : undefined
}

/** The entry that systemd-boot says it started. */
export function loaderEntry({ kernel: { files } }: { kernel: { files: Pick<Kernel['files'], 'exists' | 'read'> } }): string | undefined {
  const variable = `/sys/firmware/efi/efivars/LoaderEntrySelected-${loaderVendor}`
  if (!files.exists(variable)) return undefined
  // Four bytes of attributes, then UTF-16 with a zero at its end.
  return Buffer.from(files.read(variable)).subarray(4).toString('utf16le').split('\0')[0] || undefined
}

/** The hash of the root file system this machine runs from, as stage 0 left it. */
export function runningRoot({ kernel: { files } }: { kernel: { files: Pick<Kernel['files'], 'readTextIfThere'> } }): string | undefined {
  return /^[0-9a-f]{64}/.exec(files.readTextIfThere('/run/ichor/root') ?? '')?.[0]
}
