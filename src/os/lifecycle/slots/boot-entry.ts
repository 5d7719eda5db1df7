/**
 * Entries of systemd-boot (Boot Loader Specification type 1, with Automatic Boot Assessment): small text files whose name
 * contains the boot counters, `NAME+LEFT-DONE.conf`; systemd-boot renames the file at every boot. Our entries are written once
 * and never changed: a later one has a higher generation and takes precedence.
 */
import { parseKinds } from '../../../oci/image-manifest.ts'
import type { Slot, SlotContent } from './slot.ts'

/** A parsed boot entry. */
export interface BootEntry extends SlotContent {
  readonly file: string
  readonly generation: number
  readonly slot: Slot
  /** Boots left; undefined for a good entry, which is not counted. */
  readonly left?: number
  readonly done?: number
  /** The signed kernel it boots. */
  readonly kernel: string
}

/** The fields in a file name. */
export type EntryName = Pick<BootEntry, 'generation' | 'slot' | 'left' | 'done'>

/** Parses a file name; undefined for entries of other systems. */
export function parseEntryName(file: string): EntryName | undefined {
  const match = /^ichor-(\d{6,9})-([ab])(?:\+(\d{1,3})(?:-(\d{1,3}))?)?\.conf$/i.exec(file)
  if (!match) return undefined
  const [, generation = '', slot = '', left, done] = match
  return {
    generation: Number(generation),
    slot: slot.toLowerCase() as Slot,
    ...(left !== undefined && { left: Number(left), done: Number(done ?? 0) }),
  }
}

/** The file name of an entry. */
export function formatEntryName({ generation, slot, left, done }: EntryName): string {
  const count = left === undefined ? '' : `+${left}${done ? `-${done}` : ''}`
  return `ichor-${String(generation).padStart(6, '0')}-${slot}${count}.conf`
}

/** The text of an entry. The parameters apply only without Secure Boot; with it the kernel uses its embedded ones. */
export function formatEntry(entry: Omit<BootEntry, 'file'>, commandLine: string): string {
  const { generation, slot, kernel, version, rootHash, image, encryption } = entry
  return [
    `title Ichor ${version} (slot ${slot.toUpperCase()})`,
    'sort-key ichor',
    `version ${String(generation).padStart(6, '0')}`,
    `efi ${kernel}`,
    `options ${commandLine}`,
    `# release ${version}`,
    `# root ${rootHash}`,
    ...(encryption ? [`# encryption ${encryption.join(' ')}`] : []),
    `# image ${image}`,
    '',
  ].join('\n')
}

/** Parses an entry; undefined if it is truncated, in which case systemd-boot ignores it as well. */
export function parseEntry(file: string, text: string): (BootEntry & { commandLine: string }) | undefined {
  const name = parseEntryName(file)
  const lines = text.split('\n')
  const value = (key: string) =>
    lines
      .find((line) => line.startsWith(`${key} `))
      ?.slice(key.length + 1)
      .trimEnd()
  const kernel = value('efi')
  const version = value('# release')
  const rootHash = value('# root')
  const image = value('# image')
  if (!name || !kernel || !version || !rootHash || !/^[0-9a-f]{64}$/.test(rootHash) || !image || !/^[0-9a-f]{16}$/.test(image))
    return undefined
  const encryption = parseKinds(value('# encryption'))
  return { ...name, file, kernel, version, rootHash, image, ...(encryption && { encryption }), commandLine: value('options') ?? '' }
}

/** The order in which systemd-boot tries entries: newest first, exhausted ones last. */
export function inBootOrder<T extends EntryName>(entries: readonly T[]): T[] {
  return entries.toSorted(
    (a, b) => Number(a.left === 0) - Number(b.left === 0) || b.generation - a.generation || (b.left ?? 0) - (a.left ?? 0),
  )
}

/** The slot of an entry id in a systemd-boot variable: the file name with the counters at boot. */
export function slotOfEntryId(id: string): Slot | undefined {
  return parseEntryName(id.endsWith('.conf') ? id : `${id}.conf`)?.slot
}
