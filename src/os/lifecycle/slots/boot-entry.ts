/**
 * The entries of systemd-boot (Boot Loader Specification, type 1, with Automatic Boot Assessment): one small text file each,
 * whose name carries the number of starts that are left and done, `NAME+LEFT-DONE.conf`; systemd-boot renames it at every
 * start. An entry of ours is written once and never changed: whoever writes later has the higher generation, and wins.
 */
import type { Slot, SlotContent } from './slot.ts'

/** An entry as its file name and text tell. */
export interface BootEntry extends SlotContent {
  readonly file: string
  readonly generation: number
  readonly slot: Slot
  /** Starts left; absent when the entry is good and not counted. */
  readonly left?: number
  readonly done?: number
  /** The signed kernel it starts. */
  readonly kernel: string
}

/** What is read out of a file name. */
export type EntryName = Pick<BootEntry, 'generation' | 'slot' | 'left' | 'done'>

/** Takes a file name apart; nothing for those that are not ours. */
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

/** The text of an entry. The parameters are what the kernel is given where Secure Boot does not hold it to its own. */
export function formatEntry({ generation, slot, kernel, version, rootHash, image }: Omit<BootEntry, 'file'>, commandLine: string): string {
  return [
    `title Ichor ${version} (slot ${slot.toUpperCase()})`,
    'sort-key ichor',
    `version ${String(generation).padStart(6, '0')}`,
    `efi ${kernel}`,
    `options ${commandLine}`,
    `# release ${version}`,
    `# root ${rootHash}`,
    `# image ${image}`,
    '',
  ].join('\n')
}

/** Reads an entry; nothing when it is not whole, and then systemd-boot does not show it either. */
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
  return { ...name, file, kernel, version, rootHash, image, commandLine: value('options') ?? '' }
}

/** The order in which systemd-boot tries entries: those used up last, then the newest first. */
export function inBootOrder<T extends EntryName>(entries: readonly T[]): T[] {
  return entries.toSorted(
    (a, b) => Number(a.left === 0) - Number(b.left === 0) || b.generation - a.generation || (b.left ?? 0) - (a.left ?? 0),
  )
}

/** The name that systemd-boot has for an entry in its variables: the file's, with the count as it was found at the start. */
export function slotOfEntryId(id: string): Slot | undefined {
  return parseEntryName(id.endsWith('.conf') ? id : `${id}.conf`)?.slot
}
