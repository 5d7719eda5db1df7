/**
 * A complete GUID partition table: read from its primary header or, where that is damaged, from the backup, and written so that
 * a power cut leaves the old table or the new one.
 *
 * A write updates the backup first. Then the new entry array is written next to the one in use, and finally a single sector,
 * the primary header, switches to the new array. The primary header and its array are valid at any time, unless that single
 * sector is torn: then the backup is read, which holds the new table.
 */
import { DecodeError } from '../decode-error.ts'
import { type DeviceView, within } from '../probe/view.ts'
import { type GptPartition, readEntries, writeEntries } from './entries.ts'
import { entrySize, type GptHeader, readHeader, writeHeader } from './header.ts'

const usualEntries = 128
const mebibyte = 1 << 20

/** A partition table. Offsets and lengths are in sectors. */
export interface GptTable {
  sectorSize: number
  /** Size of the whole disk. */
  sectors: number
  diskGuid: string
  firstUsable: number
  lastUsable: number
  entries: number
  partitions: GptPartition[]
  /** Current place of the primary entry array; absent for a table that is not on the disk yet. */
  entriesAt?: number | undefined
}

/** Bytes to write, with their offsets. The writes of a step may happen in any order; steps must be flushed one after the other. */
export type WriteStep = readonly { readonly offset: number; readonly bytes: Uint8Array }[]

/** A table without partitions, with the first mebibyte free. */
export function newTable(disk: { sectorSize: number; size: number; diskGuid: string }): GptTable {
  const sectors = Math.floor(disk.size / disk.sectorSize)
  const arraySectors = (usualEntries * entrySize) / disk.sectorSize
  const table = {
    sectorSize: disk.sectorSize,
    sectors,
    diskGuid: disk.diskGuid,
    firstUsable: mebibyte / disk.sectorSize,
    lastUsable: sectors - 2 - arraySectors,
    entries: usualEntries,
    partitions: [],
  }
  if (table.lastUsable <= table.firstUsable) throw new DecodeError('GPT', 0, `a disk of ${disk.size} bytes has no room for a table`)
  return table
}

/** The table of a disk. Throws DecodeError when neither copy is valid. */
export function readTable(view: DeviceView, sectorSize: number): GptTable & { damaged?: 'first' | 'backup' } {
  const sectors = Math.floor(view.size / sectorSize)
  const read = (own: number): GptTable | DecodeError => {
    try {
      return readCopy(view, sectorSize, sectors, own)
    } catch (error) {
      if (error instanceof DecodeError) return error
      throw error
    }
  }
  const first = read(1)
  const backup = read(sectors - 1)
  if (!(first instanceof DecodeError)) return { ...first, ...(backup instanceof DecodeError && { damaged: 'backup' as const }) }
  if (backup instanceof DecodeError) throw first
  const { entriesAt: _, ...table } = backup // the primary array may be damaged: any place may be written
  return { ...table, damaged: 'first' }
}

function readCopy(view: DeviceView, sectorSize: number, sectors: number, own: number): GptTable {
  const header = readHeader(within(view, own * sectorSize, sectorSize, 'GPT header'), own, sectors)
  const array = within(view, header.entriesAt * sectorSize, header.entries * entrySize, 'GPT entries')
  const { diskGuid, firstUsable, lastUsable, entries, entriesAt } = header
  return { sectorSize, sectors, diskGuid, firstUsable, lastUsable, entries, entriesAt, partitions: readEntries(array, header) }
}

/** The place of the new array: next to the one in use where there is space for two, otherwise over it. */
function placeOfArray({ entriesAt, firstUsable, partitions }: GptTable, length: number): number {
  const lowest = Math.min(firstUsable, ...partitions.map(({ first }) => first))
  return entriesAt === 2 && 2 + 2 * length <= lowest ? 2 + length : 2
}

/** The writes for a table; with `protective` also the protective MBR, which a disk without a table needs. */
export function writeTable(table: GptTable, { protective }: { protective: boolean }): WriteStep[] {
  const { sectorSize, sectors, diskGuid, firstUsable, entries } = table
  const array = writeEntries(table.partitions, entries)
  const length = Math.ceil(array.length / sectorSize)
  const last = sectors - 1
  // On a disk that has grown the backup is not at the end: it moves to the new end.
  const lastUsable = last - length - 1
  const entriesAt = placeOfArray(table, length)
  const common = { firstUsable, lastUsable, diskGuid, entries, entriesCrc: Bun.hash.crc32(array) }
  const first: GptHeader = { own: 1, other: last, entriesAt, ...common }
  const backup: GptHeader = { own: last, other: 1, entriesAt: last - length, ...common }
  return [
    [
      { offset: backup.entriesAt * sectorSize, bytes: array },
      { offset: last * sectorSize, bytes: writeHeader(backup, sectorSize) },
    ],
    [{ offset: entriesAt * sectorSize, bytes: array }],
    ...(protective ? [[{ offset: 0, bytes: protectiveMbr(sectors, sectorSize) }]] : []),
    [{ offset: sectorSize, bytes: writeHeader(first, sectorSize) }],
  ]
}

/** Interrupt 18h: a BIOS that boots this disk continues with the next one; if it returns, the processor halts. */
const startsNothing = [0xcd, 0x18, 0xeb, 0xfe] as const

/** The protective MBR for software without GPT support (UEFI 2.10, 5.2.3). Its code only passes control back to the BIOS. */
function protectiveMbr(sectors: number, sectorSize: number): Uint8Array {
  const sector = Buffer.alloc(sectorSize)
  const entry = 446
  sector.set(startsNothing)
  sector.set([0x00, 0x02, 0x00], entry + 1) // cylinder, head, sector of the first one
  sector[entry + 4] = 0xee
  sector.set([0xff, 0xff, 0xff], entry + 5)
  sector.writeUInt32LE(1, entry + 8)
  sector.writeUInt32LE(Math.min(sectors - 1, 0xffffffff), entry + 12)
  sector.writeUInt16LE(0xaa55, 510)
  return new Uint8Array(sector)
}
