/** Directories of FAT32: entries of 32 bytes, long names before the short name they belong to. */
import { DecodeError } from '../decode-error.ts'

/** Size of one slot of a directory in bytes. */
export const slotSize = 32
/** Limit of clusters per directory: larger ones were not written here. */
export const directoryLimit = 256

/** An entry of a directory. */
export interface DirectoryEntry {
  readonly name: string
  readonly directory: boolean
  /** 0 for an empty file. */
  readonly cluster: number
  /** Size of a file in bytes. */
  readonly size: number
  /** The short name, as its 11 bytes. */
  readonly short: string
  /** Its slots in the directory: the first, and how many. */
  readonly slot: number
  readonly slots: number
}

const attribute = { label: 0x08, directory: 0x10, archive: 0x20, long: 0x0f } as const
const deleted = 0xe5
/** Offsets of the 13 characters in a long-name slot. */
const longPlaces = [1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30] as const

/** The checksum that ties long-name slots to their short name. */
function checksum(short: string): number {
  let sum = 0
  for (let at = 0; at < 11; at++) sum = (((sum & 1) << 7) + (sum >> 1) + short.charCodeAt(at)) & 0xff
  return sum
}

/** Every entry of a directory except the label, `.` and `..`. Throws DecodeError for malformed names. */
export function parseDirectory(bytes: Uint8Array): DirectoryEntry[] {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const entries: DirectoryEntry[] = []
  let long: { first: number; sum: number; parts: string[]; expected: number } | undefined
  for (let slot = 0; (slot + 1) * slotSize <= data.length; slot++) {
    const entry = data.subarray(slot * slotSize, (slot + 1) * slotSize)
    const first = entry[0] ?? 0
    if (first === 0) break
    const kind = entry[11] ?? 0
    if (first === deleted) {
      long = undefined
    } else if ((kind & 0x3f) === attribute.long) {
      const order = first & 0x3f
      if (first & 0x40) long = { first: slot, sum: entry[13] ?? 0, parts: [], expected: order }
      if (!long || order === 0 || order !== long.expected || order > 20 || entry[13] !== long.sum) long = undefined
      else {
        long.parts.unshift(longPlaces.map((at) => String.fromCharCode(entry.readUInt16LE(at))).join(''))
        long.expected--
      }
    } else {
      const short = entry.toString('latin1', 0, 11)
      const named = long?.expected === 0 && long.sum === checksum(short) ? long : undefined
      long = undefined
      if (kind & attribute.label || short.startsWith('.')) continue
      const name = named ? (named.parts.join('').split('\0')[0] ?? '') : shortToName(short, entry[12] ?? 0)
      if (name === '' || name.includes('/')) throw new DecodeError('FAT32 directory', slot * slotSize, 'a malformed name')
      const cluster = (entry.readUInt16LE(20) << 16) | entry.readUInt16LE(26)
      const size = entry.readUInt32LE(28)
      const begin = named?.first ?? slot
      entries.push({ name, directory: (kind & attribute.directory) !== 0, cluster, size, short, slot: begin, slots: slot - begin + 1 })
    }
  }
  return entries
}

/** Bits 3 and 4 of the reserved byte mark base and extension as lower case. */
function shortToName(short: string, flags: number): string {
  const base = short.slice(0, 8).trimEnd()
  const extension = short.slice(8).trimEnd()
  const cased = [flags & 0x08 ? base.toLowerCase() : base, flags & 0x10 ? extension.toLowerCase() : extension]
  return extension ? cased.join('.') : (cased[0] ?? '')
}

const plain = /^[A-Z0-9_-]{1,8}(\.[A-Z0-9_-]{1,3})?$/

/** The fields of a new entry. */
export interface NewEntry {
  readonly name: string
  readonly directory: boolean
  readonly cluster: number
  readonly size: number
}

/** Encodes the slots of a new entry; its short name differs from those of the other entries. */
export function encodeEntry({ name, directory, cluster, size }: NewEntry, others: readonly DirectoryEntry[]): Uint8Array {
  if (name === '' || name.length > 255 || /["*/:<>?\\|\0]/.test(name) || /[. ]$/.test(name)) {
    throw new RangeError(`file name ${JSON.stringify(name)} is not one of FAT32`)
  }
  const short = shortName(name, new Set(others.map((other) => other.short)))
  const longs = plain.test(name) ? 0 : Math.ceil(name.length / 13)
  const bytes = Buffer.alloc((longs + 1) * slotSize)
  for (let order = longs; order >= 1; order--) {
    const entry = bytes.subarray((longs - order) * slotSize)
    const part = name.slice((order - 1) * 13, order * 13)
    entry[0] = order | (order === longs ? 0x40 : 0)
    entry[11] = attribute.long
    entry[13] = checksum(short)
    for (const [index, at] of longPlaces.entries()) {
      // A name that ends within its slot is terminated by 0 and filled with 0xffff.
      entry.writeUInt16LE(index < part.length ? part.charCodeAt(index) : index === part.length ? 0 : 0xffff, at)
    }
  }
  shortSlot(bytes.subarray(longs * slotSize), short, directory, cluster, size)
  return bytes
}

/** One slot with a short name of 11 bytes. */
export function shortSlot(slot: Uint8Array, short: string, directory: boolean, cluster: number, size: number): void {
  const entry = Buffer.from(slot.buffer, slot.byteOffset, slotSize)
  entry.write(short, 0, 'latin1')
  entry[11] = directory ? attribute.directory : attribute.archive
  entry.writeUInt16LE(0x21, 16) // 1 January 1980, so that equal content gives equal bytes
  entry.writeUInt16LE(0x21, 18)
  entry.writeUInt16LE(0x21, 24)
  pointSlot(slot, cluster, size)
}

/** Has the slot of a short name refer to other contents. */
export function pointSlot(slot: Uint8Array, cluster: number, size: number): void {
  const entry = Buffer.from(slot.buffer, slot.byteOffset, slotSize)
  entry.writeUInt16LE(cluster >>> 16, 20)
  entry.writeUInt16LE(cluster & 0xffff, 26)
  entry.writeUInt32LE(size, 28)
}

/** The slot of the volume label. */
export function labelSlot(label: string): Uint8Array {
  const entry = Buffer.alloc(slotSize)
  entry.write(label.toUpperCase().padEnd(11).slice(0, 11), 0, 'latin1')
  entry[11] = attribute.label
  entry.writeUInt16LE(0x21, 24)
  return entry
}

/** The slots of a deleted entry. */
export function deletedSlots(slots: Uint8Array): Uint8Array {
  const gone = Uint8Array.from(slots)
  for (let at = 0; at < gone.length; at += slotSize) gone[at] = deleted
  return gone
}

/** Whether a slot is free. */
export function isFree(slots: Uint8Array, slot: number): boolean {
  const first = slots[slot * slotSize]
  return first === 0 || first === deleted
}

function shortName(name: string, taken: ReadonlySet<string>): string {
  if (plain.test(name)) {
    const [base = '', extension = ''] = name.split('.')
    return base.padEnd(8) + extension.padEnd(3)
  }
  const dot = name.lastIndexOf('.')
  const clean = (text: string) => text.toUpperCase().replace(/[^A-Z0-9_-]/g, '')
  const base = clean(dot > 0 ? name.slice(0, dot) : name)
  const extension = clean(dot > 0 ? name.slice(dot + 1) : '').slice(0, 3)
  for (let number = 1; number < 1_000_000; number++) {
    const tail = `~${number}`
    const short = (base.slice(0, 8 - tail.length) + tail).padEnd(8) + extension.padEnd(3)
    if (!taken.has(short)) return short
  }
  throw new RangeError(`no short name is left for ${JSON.stringify(name)}`)
}

/** Whether all offsets are in one sector. */
export function sameSector(offsets: readonly number[], sectorSize: number): boolean {
  return new Set(offsets.map((offset) => Math.floor(offset / sectorSize))).size === 1
}

/** The first slot of a run of free ones within one sector. */
export function roomFor(bytes: Uint8Array, needed: number, slotsPerSector: number): number | undefined {
  const total = bytes.length / slotSize
  for (let sector = 0; sector < total; sector += slotsPerSector) {
    let run = 0
    for (let slot = sector; slot < Math.min(sector + slotsPerSector, total); slot++) {
      run = isFree(bytes, slot) ? run + 1 : 0
      if (run === needed) return slot - needed + 1
    }
  }
  return undefined
}
