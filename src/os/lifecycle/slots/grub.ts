import type { FatVolume } from '../../../wire/fat/volume.ts'
import { grubConfig, grubFolder, parseSlotConfig, slotConfig } from './grub-config.ts'
import { formatEnvironment, parseEnvironment } from './grub-environment.ts'
import { dropGrub, type GrubDisk, grubFiles, grubRenewal, newGrub, stagedGrubs, stageGrub } from './grub-renewal.ts'
import {
  type BootLoader,
  type BootState,
  checked,
  emptySlot,
  filesIn,
  goodSlot,
  type LoaderRenewal,
  otherSlot,
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

const environmentFile = `${grubFolder}/grubenv`
const startLimit = 256 << 20
const slotFiles = ['vmlinuz', 'initramfs.xz'] as const

/** Two slots as directories of the BOOT partition, booted by GRUB. */
export class Grub implements BootLoader {
  readonly kind = 'grub'
  readonly renewal?: LoaderRenewal | undefined
  readonly #volume: FatVolume
  readonly #disk: GrubDisk | undefined

  /** Without the disk around the volume the boot loader itself is not renewed. */
  constructor(volume: FatVolume, disk?: GrubDisk) {
    this.#volume = volume
    this.#disk = disk
    if (disk) this.renewal = grubRenewal(volume, disk, () => this.state())
  }

  async state(): Promise<BootState> {
    const variables = await this.#environment()
    const [a, b] = await Promise.all([this.#contentOf('a'), this.#contentOf('b')])
    const good = slotNamed(variables.get('good'))
    const tried = slotNamed(variables.get('next'))
    const left = Number(variables.get('tries') || 0)
    const trial = tried && { slot: tried, left }
    const wanted = trial && left > 0 ? tried : good
    const there = { ...(a && { a }), ...(b && { b }) }
    const next = [wanted, wanted && otherSlot(wanted), 'a' as const, 'b' as const].find((slot) => slot && there[slot])
    return { slots: there, ...(good && { good }), ...(trial && { trial }), ...(next && { next }) }
  }

  async prepare(): Promise<void> {
    await this.#volume.mkdirAll(grubFolder)
    await this.#volume.mkdirAll('/ichor')
    for (const slot of ['a', 'b']) await this.#volume.mkdirAll(`/${slot}`)
    if (!(await this.#volume.has(environmentFile))) await this.#volume.create(environmentFile, formatEnvironment(new Map()))
    await replaceFile(this.#volume, `${grubFolder}/grub.cfg`, grubConfig())
  }

  async write(slot: Slot, release: SlotRelease): Promise<void> {
    const before = await this.state()
    if (before.good === slot) throw goodSlot(slot)
    const kept = before.slots[otherSlot(slot)]
    const roots = await superfluousRoots(this.#volume, kept ? [kept.rootHash] : [])
    const root = kept?.rootHash === release.rootHash ? [] : ['root.sqsh']
    const core = this.#disk && (await newGrub(this.#disk, release))
    const superfluous = [...(await filesIn(this.#volume, `/${slot}`)), ...roots, ...(await stagedGrubs(this.#volume))]
    requireRoom(this.#volume, release, [...slotFiles, ...root, ...(core ? grubFiles : [])], superfluous)
    if (before.trial) await this.#change({ next: '', tries: '' })
    await dropGrub(this.#volume)
    await this.#volume.remove(`/${slot}/slot.cfg`)
    for (const path of [...slotFiles.map((name) => `/${slot}/${name}`), ...roots.map((root) => root.path)]) await this.#volume.remove(path)
    for (const name of slotFiles) await this.#volume.create(`/${slot}/${name}`, checked(release, name), release.size(name))
    await putByContent(this.#volume, rootFile(release.rootHash), release, 'root.sqsh')
    if (core) await stageGrub(this.#volume, release, core)
    await this.#volume.create(`/${slot}/slot.cfg`, Buffer.from(slotConfig(slot, release, withSlot(release.commandLine, slot))))
  }

  async try(slot: Slot): Promise<void> {
    if (!(await this.#contentOf(slot))) throw emptySlot(slot)
    await this.#change({ next: slot, tries: String(trialStarts) })
  }

  async keep(slot: Slot): Promise<void> {
    if (!(await this.#contentOf(slot))) throw emptySlot(slot)
    await this.#change({ good: slot, next: '', tries: '' })
  }

  async giveUp(): Promise<void> {
    await this.#change({ next: '', tries: '' })
    await dropGrub(this.#volume)
  }

  async start(slot: Slot) {
    return {
      kernel: await this.#volume.read(`/${slot}/vmlinuz`, startLimit),
      initramfs: await this.#volume.read(`/${slot}/initramfs.xz`, startLimit),
    }
  }

  async #environment(): Promise<Map<string, string>> {
    return ((await this.#volume.has(environmentFile)) && parseEnvironment(await this.#volume.read(environmentFile))) || new Map()
  }

  async #change(variables: Readonly<Record<string, string>>): Promise<void> {
    const known = await this.#environment()
    for (const [name, value] of Object.entries(variables)) known.set(name, value)
    await this.#volume.overwrite(environmentFile, formatEnvironment(known))
  }

  async #contentOf(slot: Slot): Promise<SlotContent | undefined> {
    const path = `/${slot}/slot.cfg`
    return (await this.#volume.has(path)) ? parseSlotConfig(Buffer.from(await this.#volume.read(path)).toString()) : undefined
  }
}

function slotNamed(text: string | undefined): Slot | undefined {
  return text === 'a' || text === 'b' ? text : undefined
}
