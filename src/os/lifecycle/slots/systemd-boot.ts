import type { FatVolume } from '../../../wire/fat/volume.ts'
import { type BootEntry, formatEntry, formatEntryName, inBootOrder, parseEntry } from './boot-entry.ts'
import type { SingleStart } from './firmware.ts'
import { bringsLoader, loaderFile, loaderOfRelease, loaderRenewal, newLoaderFile, stageLoader } from './loader-renewal.ts'
import {
  type BootFile,
  type BootLoader,
  type BootState,
  emptySlot,
  filesIn,
  goodSlot,
  type LoaderRenewal,
  putByContent,
  replaceFile,
  requireRoom,
  rootFile,
  type Slot,
  type SlotContent,
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
export class SystemdBoot implements BootLoader {
  readonly kind = 'systemd-boot'
  readonly renewal?: LoaderRenewal | undefined
  readonly #volume: FatVolume
  readonly #loader: string

  /** Without the firmware the boot loader itself is not renewed; `loader` is where the firmware of the machine looks for it. */
  constructor(volume: FatVolume, firmware?: SingleStart, loader = loaderFile) {
    this.#volume = volume
    this.#loader = loader
    if (firmware) this.renewal = loaderRenewal(volume, firmware)
  }

  async state(): Promise<BootState> {
    const found = await this.#read()
    const [next] = found
    const newest = found.toSorted((a, b) => b.generation - a.generation)
    const good = newest.find(({ left }) => left === undefined)
    const slots: Partial<Record<Slot, SlotContent>> = {}
    for (const entry of newest) slots[entry.slot] ??= contentOf(entry)
    const trial = newest[0]?.left === undefined ? undefined : { slot: newest[0].slot, left: newest[0].left }
    return { slots, ...(good && { good: good.slot }), ...(trial && { trial }), ...(next && { next: next.slot }) }
  }

  async prepare(): Promise<void> {
    await this.#volume.mkdirAll(entries)
    await this.#volume.mkdirAll(kernels)
    await this.#volume.mkdirAll('/ichor')
    await replaceFile(this.#volume, '/loader/loader.conf', 'timeout 0\nconsole-mode keep\neditor no\nauto-entries no\n')
  }

  async arm(open: SlotRelease['open'], size: SlotRelease['size']): Promise<void> {
    await this.#volume.mkdirAll('/EFI/BOOT')
    if (!(await this.#volume.has(this.#loader))) await this.#volume.create(this.#loader, open(loaderOfRelease), size(loaderOfRelease))
  }

  async write(slot: Slot, release: SlotRelease): Promise<void> {
    const found = await this.#read()
    if ((await this.state()).good === slot) throw goodSlot(slot)
    const kept = found.filter((entry) => entry.slot !== slot)
    const roots = kept.map(({ rootHash }) => rootHash)
    const superfluous = [...(await superfluousKernels(this.#volume, kept)), ...(await superfluousRoots(this.#volume, roots))]
    const kernel = kernelFile(release)
    const loader = this.renewal && (await bringsLoader(this.#volume, release)) ? [loaderOfRelease] : []
    const shared = { 'vmlinuz.efi': kept.some((entry) => entry.kernel === kernel), 'root.sqsh': roots.includes(release.rootHash) }
    requireRoom(this.#volume, release, [...(['vmlinuz.efi', 'root.sqsh'] as const).filter((name) => !shared[name]), ...loader], superfluous)
    for (const { file } of found.filter((entry) => entry.slot === slot)) await this.#volume.remove(`${entries}/${file}`)
    for (const each of ['a', 'b'] as const) await this.#volume.remove(writtenFile(each))
    for (const { path } of superfluous) await this.#volume.remove(path)
    await this.#volume.mkdirAll(kernels)
    await this.#volume.mkdirAll('/ichor')
    await putByContent(this.#volume, kernel, release, 'vmlinuz.efi')
    await putByContent(this.#volume, rootFile(release.rootHash), release, 'root.sqsh')
    if (this.renewal) await stageLoader(this.#volume, release)
    const entry = { ...contentOf(release), kernel, slot, generation: 0 }
    await this.#volume.mkdirAll('/loader')
    await this.#volume.create(writtenFile(slot), Buffer.from(formatEntry(entry, withSlot(release.commandLine, slot))))
  }

  async try(slot: Slot): Promise<void> {
    await this.#name(slot, trialStarts)
  }

  async keep(slot: Slot): Promise<void> {
    await this.#name(slot)
  }

  async giveUp(): Promise<void> {
    for (const { file, left } of await this.#read()) if (left !== undefined) await this.#volume.remove(`${entries}/${file}`)
    // A request to the firmware for a file that is gone costs nothing.
    await this.#volume.remove(newLoaderFile)
  }

  /** The release written last, while it has no entry. */
  async #written(slot: Slot) {
    const path = writtenFile(slot)
    if (!(await this.#volume.has(path))) return undefined
    const name = formatEntryName({ generation: 0, slot })
    const entry = parseEntry(name, Buffer.from(await this.#volume.read(path, entryLimit)).toString())
    return entry && (await this.#volume.has(entry.kernel)) && (await this.#volume.has(rootFile(entry.rootHash))) ? entry : undefined
  }

  /** The entries whose kernel exists, in boot order. */
  async #read() {
    const found: (BootEntry & { commandLine: string })[] = []
    for (const { name, size, directory } of await this.#volume.list(entries)) {
      if (directory || size > entryLimit) continue
      const entry = parseEntry(name, Buffer.from(await this.#volume.read(`${entries}/${name}`)).toString())
      if (entry && (await this.#volume.has(entry.kernel))) found.push(entry)
    }
    return inBootOrder(found)
  }

  /** Writes a new entry for a slot, then removes its older ones. */
  async #name(slot: Slot, left?: number): Promise<void> {
    const found = await this.#read()
    const content =
      (await this.#written(slot)) ?? found.filter((entry) => entry.slot === slot).toSorted((a, b) => b.generation - a.generation)[0]
    if (!content) throw emptySlot(slot)
    const generation = Math.max(0, ...(await generations(this.#volume))) + 1
    const entry = { ...contentOf(content), kernel: content.kernel, generation, slot, ...(left !== undefined && { left, done: 0 }) }
    await this.#volume.mkdirAll(entries)
    await this.#volume.create(`${entries}/${formatEntryName(entry)}`, Buffer.from(formatEntry(entry, content.commandLine)))
    // A good entry replaces all others of its slot; one on trial keeps the last good one.
    const older = found.filter((other) => other.slot === slot && (left === undefined || other.left !== undefined))
    for (const { file } of older) await this.#volume.remove(`${entries}/${file}`)
    await this.#volume.remove(writtenFile(slot))
  }
}

const contentOf = ({ version, rootHash, image, encryption }: SlotContent): SlotContent => ({
  ...{ version, rootHash, image },
  ...(encryption && { encryption }),
})

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
