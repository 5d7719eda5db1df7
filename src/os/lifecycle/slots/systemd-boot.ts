import type { FatVolume } from '../../../wire/fat/volume.ts'
import { type BootEntry, formatEntry, formatEntryName, inBootOrder, parseEntry } from './boot-entry.ts'
import {
  type BootFile,
  type BootLoader,
  type BootState,
  filesIn,
  putByContent,
  replaceFile,
  requireRoom,
  rootFile,
  type Slot,
  type SlotContent,
  SlotError,
  type SlotRelease,
  superfluousRoots,
  trialStarts,
  withSlot,
} from './slot.ts'

const entries = '/loader/entries'
const kernels = '/EFI/ichor'
const entryLimit = 4096

/** The entry of a written release, in a place systemd-boot does not read: it serves to begin the trial later. */
const writtenFile = (slot: Slot) => `/loader/written-${slot}.conf`

/** Two slots as entries of systemd-boot on the EFI partition. */
export function systemdBoot(volume: FatVolume): BootLoader {
  const written = async (slot: Slot) => {
    const path = writtenFile(slot)
    if (!(await volume.has(path))) return undefined
    const name = formatEntryName({ generation: 0, slot })
    const entry = parseEntry(name, Buffer.from(await volume.read(path, entryLimit)).toString())
    return entry && (await volume.has(entry.kernel)) && (await volume.has(rootFile(entry.rootHash))) ? entry : undefined
  }

  const read = async () => {
    const found: (BootEntry & { commandLine: string })[] = []
    for (const { name, size, directory } of await volume.list(entries)) {
      if (directory || size > entryLimit) continue
      const entry = parseEntry(name, Buffer.from(await volume.read(`${entries}/${name}`)).toString())
      if (entry && (await volume.has(entry.kernel))) found.push(entry)
    }
    return inBootOrder(found)
  }

  const state = async (): Promise<BootState> => {
    const found = await read()
    const [next] = found
    const newest = found.toSorted((a, b) => b.generation - a.generation)
    const good = newest.find(({ left }) => left === undefined)
    const slots: Partial<Record<Slot, SlotContent>> = {}
    for (const { slot, version, rootHash, image } of newest) slots[slot] ??= { version, rootHash, image }
    const trial = newest[0]?.left === undefined ? undefined : { slot: newest[0].slot, left: newest[0].left }
    return { slots, ...(good && { good: good.slot }), ...(trial && { trial }), ...(next && { next: next.slot }) }
  }

  /** Writes a new entry for a slot, then removes its older ones. */
  const name = async (slot: Slot, left?: number) => {
    const found = await read()
    const content = (await written(slot)) ?? found.filter((entry) => entry.slot === slot).toSorted((a, b) => b.generation - a.generation)[0]
    if (!content) throw new SlotError(`slot ${slot.toUpperCase()} holds no release`)
    const generation = Math.max(0, ...(await generations(volume))) + 1
    const { version, rootHash, image, kernel } = content
    const entry = { version, rootHash, image, kernel, generation, slot, ...(left !== undefined && { left, done: 0 }) }
    await volume.mkdirAll(entries)
    await volume.create(`${entries}/${formatEntryName(entry)}`, Buffer.from(formatEntry(entry, content.commandLine)))
    // A good entry replaces all others of its slot; one on trial keeps the last good one.
    const older = found.filter((other) => other.slot === slot && (left === undefined || other.left !== undefined))
    for (const { file } of older) await volume.remove(`${entries}/${file}`)
    await volume.remove(writtenFile(slot))
  }

  return {
    kind: 'systemd-boot',
    state,

    async prepare() {
      await volume.mkdirAll(entries)
      await volume.mkdirAll(kernels)
      await volume.mkdirAll('/ichor')
      await replaceFile(volume, '/loader/loader.conf', 'timeout 0\nconsole-mode keep\neditor no\nauto-entries no\n')
    },

    async arm(open, size) {
      await volume.mkdirAll('/EFI/BOOT')
      if (!(await volume.has('/EFI/BOOT/BOOTX64.EFI')))
        await volume.create('/EFI/BOOT/BOOTX64.EFI', open('systemd-boot.efi'), size('systemd-boot.efi'))
    },

    async write(slot, release) {
      const found = await read()
      if ((await state()).good === slot) throw new SlotError(`slot ${slot.toUpperCase()} is the one last marked good and is not written`)
      const kept = found.filter((entry) => entry.slot !== slot)
      const roots = kept.map(({ rootHash }) => rootHash)
      const superfluous = [...(await superfluousKernels(volume, kept)), ...(await superfluousRoots(volume, roots))]
      const kernel = kernelFile(release)
      const shared = { 'vmlinuz.efi': kept.some((entry) => entry.kernel === kernel), 'root.sqsh': roots.includes(release.rootHash) }
      requireRoom(
        volume,
        release,
        (['vmlinuz.efi', 'root.sqsh'] as const).filter((name) => !shared[name]),
        superfluous,
      )
      for (const { file } of found.filter((entry) => entry.slot === slot)) await volume.remove(`${entries}/${file}`)
      for (const each of ['a', 'b'] as const) await volume.remove(writtenFile(each))
      for (const { path } of superfluous) await volume.remove(path)
      await volume.mkdirAll(kernels)
      await volume.mkdirAll('/ichor')
      await putByContent(volume, kernel, release, 'vmlinuz.efi')
      await putByContent(volume, rootFile(release.rootHash), release, 'root.sqsh')
      const { version, rootHash, image, commandLine } = release
      const entry = { version, rootHash, image, kernel, slot, generation: 0 }
      await volume.mkdirAll('/loader')
      await volume.create(writtenFile(slot), Buffer.from(formatEntry(entry, withSlot(commandLine, slot))))
    },

    try: (slot) => name(slot, trialStarts),
    keep: (slot) => name(slot),

    async giveUp() {
      for (const { file, left } of await read()) if (left !== undefined) await volume.remove(`${entries}/${file}`)
    },
  }
}

function kernelFile(release: SlotRelease): string {
  return `${kernels}/${release.sha256('vmlinuz.efi').slice(0, 16)}.efi`
}

async function generations(volume: FatVolume): Promise<number[]> {
  const names = (await volume.list(entries)).map(({ name }) => /^ichor-(\d{6,9})-/i.exec(name)?.[1])
  return names.filter((number) => number !== undefined).map(Number)
}

async function superfluousKernels(volume: FatVolume, kept: readonly BootEntry[]): Promise<BootFile[]> {
  const names = new Set(kept.map(({ kernel }) => kernel.toLowerCase()))
  return (await filesIn(volume, kernels)).filter(({ path }) => !names.has(path.toLowerCase()))
}
