import type { FatVolume } from '../../../wire/fat/volume.ts'
import { grubConfig, grubFolder, parseSlotConfig, slotConfig } from './grub-config.ts'
import { formatEnvironment, parseEnvironment } from './grub-environment.ts'
import {
  type BootLoader,
  type BootState,
  checked,
  filesIn,
  otherSlot,
  putByContent,
  replaceFile,
  requireRoom,
  rootFile,
  type Slot,
  type SlotContent,
  SlotError,
  superfluousRoots,
  trialStarts,
  withSlot,
} from './slot.ts'

const environmentFile = `${grubFolder}/grubenv`
const startLimit = 256 << 20
const slotFiles = ['vmlinuz', 'initramfs.xz'] as const

/** Two slots as directories of the BOOT partition, booted by GRUB. */
export function grub(volume: FatVolume): BootLoader {
  const environment = async (): Promise<Map<string, string>> =>
    ((await volume.has(environmentFile)) && parseEnvironment(await volume.read(environmentFile))) || new Map()

  const change = async (variables: Readonly<Record<string, string>>) => {
    const known = await environment()
    for (const [name, value] of Object.entries(variables)) known.set(name, value)
    await volume.overwrite(environmentFile, formatEnvironment(known))
  }

  const contentOf = async (slot: Slot): Promise<SlotContent | undefined> => {
    const path = `/${slot}/slot.cfg`
    return (await volume.has(path)) ? parseSlotConfig(Buffer.from(await volume.read(path)).toString()) : undefined
  }

  const state = async (): Promise<BootState> => {
    const variables = await environment()
    const [a, b] = await Promise.all([contentOf('a'), contentOf('b')])
    const good = slotNamed(variables.get('good'))
    const tried = slotNamed(variables.get('next'))
    const left = Number(variables.get('tries') || 0)
    const trial = tried && { slot: tried, left }
    const wanted = trial && left > 0 ? tried : good
    const there = { ...(a && { a }), ...(b && { b }) }
    const next = [wanted, wanted && otherSlot(wanted), 'a' as const, 'b' as const].find((slot) => slot && there[slot])
    return { slots: there, ...(good && { good }), ...(trial && { trial }), ...(next && { next }) }
  }

  return {
    kind: 'grub',
    state,

    async prepare() {
      await volume.mkdirAll(grubFolder)
      await volume.mkdirAll('/ichor')
      for (const slot of ['a', 'b']) await volume.mkdirAll(`/${slot}`)
      if (!(await volume.has(environmentFile))) await volume.create(environmentFile, formatEnvironment(new Map()))
      await replaceFile(volume, `${grubFolder}/grub.cfg`, grubConfig())
    },

    async write(slot, release) {
      const before = await state()
      if (before.good === slot) throw new SlotError(`slot ${slot.toUpperCase()} is the one last marked good and is not written`)
      const kept = before.slots[otherSlot(slot)]
      const roots = await superfluousRoots(volume, kept ? [kept.rootHash] : [])
      const needed = kept?.rootHash === release.rootHash ? slotFiles : [...slotFiles, 'root.sqsh']
      requireRoom(volume, release, needed, [...(await filesIn(volume, `/${slot}`)), ...roots])
      if (before.trial) await change({ next: '', tries: '' })
      await volume.remove(`/${slot}/slot.cfg`)
      for (const path of [...slotFiles.map((name) => `/${slot}/${name}`), ...roots.map((root) => root.path)]) await volume.remove(path)
      for (const name of slotFiles) await volume.create(`/${slot}/${name}`, checked(release, name), release.size(name))
      await putByContent(volume, rootFile(release.rootHash), release, 'root.sqsh')
      await volume.create(`/${slot}/slot.cfg`, Buffer.from(slotConfig(slot, release, withSlot(release.commandLine, slot))))
    },

    async try(slot) {
      if (!(await contentOf(slot))) throw new SlotError(`slot ${slot.toUpperCase()} holds no release`)
      await change({ next: slot, tries: String(trialStarts) })
    },

    async keep(slot) {
      if (!(await contentOf(slot))) throw new SlotError(`slot ${slot.toUpperCase()} holds no release`)
      await change({ good: slot, next: '', tries: '' })
    },

    giveUp: () => change({ next: '', tries: '' }),

    start: async (slot) => ({
      kernel: await volume.read(`/${slot}/vmlinuz`, startLimit),
      initramfs: await volume.read(`/${slot}/initramfs.xz`, startLimit),
    }),
  }
}

function slotNamed(text: string | undefined): Slot | undefined {
  return text === 'a' || text === 'b' ? text : undefined
}
