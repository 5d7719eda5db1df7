/**
 * A hybrid ISO image: ISO 9660 (ECMA-119) for CDs, started by BIOS and UEFI through El Torito ("El Torito" Bootable CD-ROM
 * Format 1.0), and with a partition table for sticks. The EFI system partition is the end of the image, and the big files
 * of ISO 9660 lie inside it: the two file systems share their bytes.
 */

import type { Segment } from '../../src/oci/image.ts'
import { present } from '../build/present.ts'

const sector = 2048
/** Sectors before the volume descriptors, for the boot sector of sticks. */
const systemArea = 16
const diskSector = 512

/** A file of the ISO: bytes of its own, or a stretch of the EFI system partition. */
export interface IsoFile {
  /** Relative, in small letters; the kernel shows the capital letters of the format as small ones. */
  path: string
  content: Uint8Array | { offset: number; size: number }
}

/** What an ISO is made of. */
export interface IsoParts {
  label: string
  files: readonly IsoFile[]
  /** GRUB for CDs (`i386-pc-eltorito`). */
  grub: Uint8Array
  /** GRUB's first sector for sticks (`boot_hybrid.img`). */
  grubSector: Uint8Array
  /** The EFI system partition; a multiple of 2 KiB. */
  efi: { file: string; size: number }
  /** Of the disk, when the image is on one. */
  serial: number
}

/** Something has no place in the format. */
export class IsoError extends Error {
  override name = 'IsoError'
}

interface Extent {
  start: number
  size: number
}

interface Folder extends Extent {
  name: string
  parent?: Folder | undefined
  folders: Map<string, Folder>
  files: Map<string, Extent>
}

const u16 = (value: number) => Buffer.from([value & 255, value >> 8, value >> 8, value & 255])
function u32(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt32LE(value, 0)
  bytes.writeUInt32BE(value, 4)
  return bytes
}

/** 1970, the earliest time the seven bytes of a record are commonly read as. */
const noTime = Buffer.from([70, 1, 1, 0, 0, 0, 0])

/** A directory record (ECMA-119, 9.1). */
function record(name: Uint8Array, start: number, size: number, folder: boolean): Buffer {
  const pad = name.length % 2 ? 0 : 1
  const length = 33 + name.length + pad
  if (length > 255) throw new IsoError(`name "${Buffer.from(name)}" is too long for ISO 9660`)
  return Buffer.concat([
    Buffer.from([length, 0]),
    u32(start),
    u32(size),
    noTime,
    Buffer.from([folder ? 2 : 0, 0, 0]),
    u16(1),
    Buffer.from([name.length]),
    name,
    Buffer.alloc(pad),
  ])
}

/** Records in sectors; none crosses from one to the next. */
function packed(records: readonly Buffer[]): Buffer {
  const parts: Buffer[] = []
  let used = 0
  for (const each of records) {
    const left = sector - (used % sector)
    if (each.length > left) {
      parts.push(Buffer.alloc(left))
      used += left
    }
    parts.push(each)
    used += each.length
  }
  return Buffer.concat([...parts, Buffer.alloc(roundUp(used) - used)])
}

const roundUp = (size: number) => Math.ceil(size / sector) * sector
const sectors = (size: number) => Math.ceil(size / sector)

const identifier = (name: string) => Buffer.from(name.toUpperCase(), 'latin1')

function recordsOf(folder: Folder): Buffer[] {
  const up = folder.parent ?? folder
  const named = [
    ...[...folder.folders].map(([name, each]) => ({
      name: identifier(name),
      make: (id: Buffer) => record(id, each.start, each.size, true),
    })),
    ...[...folder.files].map(([name, each]) => ({
      name: Buffer.concat([identifier(name), Buffer.from(';1')]),
      make: (id: Buffer) => record(id, each.start, each.size, false),
    })),
  ].sort((a, b) => Buffer.compare(a.name, b.name))
  return [
    record(Buffer.from([0]), folder.start, folder.size, true),
    record(Buffer.from([1]), up.start, up.size, true),
    ...named.map(({ name, make }) => make(name)),
  ]
}

/** The path table (ECMA-119, 9.4): folders by depth, each with the number of its parent. */
function pathTable(folders: readonly Folder[], big: boolean): Buffer {
  return Buffer.concat(
    folders.map((folder) => {
      const name = folder.parent ? identifier(folder.name) : Buffer.from([0])
      const head = Buffer.alloc(8)
      head[0] = name.length
      const parent = folders.indexOf(folder.parent ?? folder) + 1
      if (big) {
        head.writeUInt32BE(folder.start, 2)
        head.writeUInt16BE(parent, 6)
      } else {
        head.writeUInt32LE(folder.start, 2)
        head.writeUInt16LE(parent, 6)
      }
      return Buffer.concat([head, name, Buffer.alloc(name.length % 2)])
    }),
  )
}

function grow(files: readonly IsoFile[]): Folder {
  const make = (name: string, parent?: Folder): Folder => ({ name, parent, folders: new Map(), files: new Map(), start: 0, size: 0 })
  const root = make('')
  for (const { path, content } of files) {
    const names = path.split('/')
    if (names.some((name) => !/^[a-z0-9][a-z0-9._-]{0,29}$/.test(name))) throw new IsoError(`path "${path}" does not fit ISO 9660`)
    const name = names.pop() ?? ''
    let at = root
    for (const folder of names) {
      const below = at.folders.get(folder) ?? make(folder, at)
      at.folders.set(folder, below)
      at = below
    }
    if (at.files.has(name)) throw new IsoError(`path "${path}" is there twice`)
    at.files.set(name, { start: 0, size: content instanceof Uint8Array ? content.length : content.size })
  }
  return root
}

/** The place of a file that is in the tree. */
function fileAt(root: Folder, path: string): Extent {
  const names = path.split('/')
  const name = names.pop() ?? ''
  const folder = names.reduce<Folder | undefined>((at, each) => at?.folders.get(each), root)
  return present(folder?.files.get(name), `"${path}"`)
}

function byDepth(root: Folder): Folder[] {
  const all = [root]
  for (const folder of all) all.push(...[...folder.folders].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each))
  return all
}

const text = (value: string, length: number) => Buffer.from(value.padEnd(length).slice(0, length), 'latin1')

function descriptor(type: number, body: readonly Uint8Array[]): Buffer {
  const bytes = Buffer.alloc(sector)
  Buffer.concat([Buffer.from([type]), Buffer.from('CD001'), Buffer.from([1]), ...body]).copy(bytes)
  return bytes
}

/** The primary volume descriptor (ECMA-119, 8.4). */
function primary(label: string, size: number, root: Folder, table: { size: number; little: number; big: number }): Buffer {
  const noDate = Buffer.concat([Buffer.from('0'.repeat(16)), Buffer.from([0])])
  const little = Buffer.alloc(8)
  little.writeUInt32LE(table.little)
  const big = Buffer.alloc(8)
  big.writeUInt32BE(table.big)
  return descriptor(1, [
    ...[Buffer.from([0]), text('', 32), text(label, 32), Buffer.alloc(8), u32(sectors(size)), Buffer.alloc(32)],
    ...[u16(1), u16(1), u16(sector), u32(table.size), little, big],
    record(Buffer.from([0]), root.start, root.size, true),
    ...[text('', 128), text('', 128), text('', 128), text('', 128), text('', 37), text('', 37), text('', 37)],
    ...[noDate, noDate, noDate, noDate, Buffer.from([1])],
  ])
}

/** The boot catalog: BIOS starts the file it is given, UEFI takes all from there to the end as a system partition. */
function bootCatalog(grub: number, efi: number): Buffer {
  const bytes = Buffer.alloc(sector)
  bytes[0] = 1 // validation
  bytes[30] = 0x55
  bytes[31] = 0xaa
  let sum = 0
  for (let at = 0; at < 32; at += 2) sum += bytes.readUInt16LE(at)
  bytes.writeUInt16LE(-sum & 0xffff, 28)
  bytes[32] = 0x88 // bootable, no emulation
  bytes.writeUInt16LE(4, 38) // sectors of 512 bytes to load
  bytes.writeUInt32LE(grub, 40)
  bytes[64] = 0x91 // the last section
  bytes[65] = 0xef // for UEFI
  bytes.writeUInt16LE(1, 66)
  bytes[96] = 0x88
  bytes.writeUInt16LE(0, 102) // up to the end (UEFI 2.10, 13.3.2.1)
  bytes.writeUInt32LE(efi, 104)
  return bytes
}

/** GRUB with its own position filled in: the boot info table of mkisofs, and the pointer to its second sector. */
function placedGrub(grub: Uint8Array, start: number): Buffer {
  const bytes = Buffer.concat([grub, Buffer.alloc(roundUp(grub.length) - grub.length)])
  bytes.fill(0, 8, 64)
  bytes.writeUInt32LE(systemArea, 8)
  bytes.writeUInt32LE(start, 12)
  bytes.writeUInt32LE(grub.length, 16)
  bytes.writeBigUInt64LE(BigInt(start * 4 + 5), sector + 500)
  let sum = 0
  for (let at = 64; at < grub.length - (grub.length % 4); at += 4) sum = (sum + bytes.readUInt32LE(at)) >>> 0
  bytes.writeUInt32LE(sum, 20)
  return bytes
}

/** The boot sector of sticks: GRUB's, and a partition for UEFI. */
function masterBootRecord({ grubSector, serial, efi }: IsoParts, grub: number, efiStart: number): Buffer {
  if (grubSector.length !== diskSector) throw new IsoError('the boot sector for sticks is not 512 bytes long')
  const bytes = Buffer.from(grubSector)
  bytes.writeBigUInt64LE(BigInt(grub * 4 + 4), 0x1b0) // behind the sector that CDs begin with
  bytes.writeUInt32LE(serial >>> 0, 0x1b8)
  bytes.fill(0, 0x1bc, 0x1fe)
  const entry = (at: number, status: number, type: number, start: number, count: number) => {
    bytes.set([status, 0xfe, 0xff, 0xff, type, 0xfe, 0xff, 0xff], at)
    bytes.writeUInt32LE(start, at + 8)
    bytes.writeUInt32LE(count, at + 12)
  }
  const end = efiStart * 4 + efi.size / diskSector
  // Some BIOSes start only disks with an active partition; one of no type is nobody's and may lie over the other.
  entry(0x1be, 0x80, 0, 0, end)
  entry(0x1ce, 0, 0xef, efiStart * 4, efi.size / diskSector)
  bytes.writeUInt16LE(0xaa55, 0x1fe)
  return bytes
}

/** The image, as pieces in their order. */
export function makeIso(parts: IsoParts): Segment[] {
  if (parts.efi.size % sector) throw new IsoError('the EFI system partition is no multiple of 2 KiB')
  const root = grow(parts.files)
  const folders = byDepth(root)
  const tableSize = pathTable(folders, false).length
  let next = systemArea + 4 // three descriptors and the catalog
  const [little, big] = [next, next + sectors(tableSize)]
  next += 2 * sectors(tableSize)
  for (const folder of folders) {
    folder.size = packed(recordsOf(folder)).length
    folder.start = next
    next += sectors(folder.size)
  }
  const grub = next
  next += sectors(parts.grub.length)
  const own: Buffer[] = []
  const starts = new Map<string, number>()
  for (const { path, content } of parts.files) {
    if (!(content instanceof Uint8Array)) continue
    starts.set(path, next)
    own.push(Buffer.concat([content, Buffer.alloc(roundUp(content.length) - content.length)]))
    next += sectors(content.length)
  }
  const efi = next
  for (const { path, content } of parts.files) {
    if (!(content instanceof Uint8Array) && content.offset % sector) throw new IsoError(`"${path}" does not begin at a multiple of 2 KiB`)
    fileAt(root, path).start =
      content instanceof Uint8Array ? present(starts.get(path), `start of "${path}"`) : efi + content.offset / sector
  }
  const area = Buffer.alloc(systemArea * sector)
  masterBootRecord(parts, grub, efi).copy(area)
  const catalog = Buffer.alloc(4)
  catalog.writeUInt32LE(systemArea + 3)
  const table = (isBig: boolean) => {
    const bytes = pathTable(folders, isBig)
    return Buffer.concat([bytes, Buffer.alloc(roundUp(bytes.length) - bytes.length)])
  }
  const head = Buffer.concat([
    area,
    primary(parts.label, efi * sector + parts.efi.size, root, { size: tableSize, little, big }),
    descriptor(0, [text('EL TORITO SPECIFICATION', 23), Buffer.alloc(9), Buffer.alloc(32), catalog]),
    descriptor(255, []),
    bootCatalog(grub, efi),
    table(false),
    table(true),
    ...folders.map((folder) => packed(recordsOf(folder))),
    placedGrub(parts.grub, grub),
    ...own,
  ])
  if (head.length !== efi * sector) throw new IsoError('the parts do not lie where they were planned')
  return [{ bytes: head }, { file: parts.efi.file, offset: 0, length: parts.efi.size }]
}
