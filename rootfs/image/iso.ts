/**
 * A hybrid ISO image: ISO 9660 (ECMA-119) for CDs, started by BIOS and UEFI through El Torito ("El Torito" Bootable CD-ROM
 * Format 1.0), and with a partition table for sticks. The EFI system partition is the end of the image, and the big files
 * of ISO 9660 lie inside it: the two file systems share their bytes.
 */

import type { Segment } from '../../src/oci/image.ts'
import { bothOrders } from '../../src/wire/iso9660/files.ts'
import { present } from '../build/present.ts'
import { bootCatalog, masterBootRecord, placedGrub } from './iso-boot.ts'
import { IsoError, roundUp, sector, sectors, systemArea } from './iso-sectors.ts'

/** A file of the ISO: bytes of its own, a stretch of the EFI system partition, or another file. */
export interface IsoFile {
  /** Relative, in small letters; the kernel shows the capital letters of the format as small ones. Other names are alternate names. */
  path: string
  content: Uint8Array | { offset: number; size: number } | { file: string; size: number }
  /** Bytes that are kept for a longer content of its own, so that it can be changed in place; at least a sector's. */
  room?: number
}

/** What an ISO is made of. */
export interface IsoParts {
  label: string
  files: readonly IsoFile[]
  /** GRUB for BIOS, on CDs (`i386-pc-eltorito`) and as the first sector of sticks (`boot_hybrid.img`); without it only UEFI starts the image. */
  grub?: { medium: Uint8Array; hybrid: Uint8Array } | undefined
  /** The EFI system partition; a multiple of 2 KiB. */
  efi: { file: string; size: number }
  /** Of the disk, when the image is on one. */
  serial: number
}

interface Extent {
  start: number
  size: number
}

interface Named extends Extent {
  /** Where the format has no room for the name: the name itself (Rock Ridge). */
  alternate?: string | undefined
}

interface Folder extends Named {
  name: string
  parent?: Folder | undefined
  folders: Map<string, Folder>
  files: Map<string, Named>
}

const u16 = (value: number) => Buffer.from([value & 255, value >> 8, value >> 8, value & 255])

/** 1970, the earliest time the seven bytes of a record are commonly read as. */
const noTime = Buffer.from([70, 1, 1, 0, 0, 0, 0])

/** A directory record (ECMA-119, 9.1). */
function record(name: Uint8Array, start: number, size: number, folder: boolean, extra: Uint8Array = new Uint8Array()): Buffer {
  const pad = name.length % 2 ? 0 : 1
  const length = 33 + name.length + pad + extra.length
  return Buffer.concat([
    Buffer.from([length, 0]),
    bothOrders(start),
    bothOrders(size),
    noTime,
    Buffer.from([folder ? 2 : 0, 0, 0]),
    u16(1),
    Buffer.from([name.length]),
    name,
    Buffer.alloc(pad),
    extra,
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

/** Names that the format itself takes here, and others that the extension for alternate names takes. */
const plainName = /^[a-z0-9][a-z0-9._-]{0,29}$/
const alternateName = /^[\x21-\x2e\x30-\x7e]{1,200}$/

/** A name of its own in a record (Rock Ridge, NM). */
function alternateEntry({ alternate: name }: Named): Buffer {
  return name === undefined ? Buffer.alloc(0) : Buffer.concat([Buffer.from('NM'), Buffer.from([5 + name.length, 1, 0]), Buffer.from(name)])
}

/** In the root: that records have more (SUSP, SP), and by which extension (ER). */
const alternateMark = Buffer.concat([
  Buffer.from('SP'),
  Buffer.from([7, 1, 0xbe, 0xef, 0]),
  Buffer.from('ER'),
  Buffer.from([18, 1, 10, 0, 0, 1]),
  Buffer.from('RRIP_1991A'),
])

const identifier = (name: string) => Buffer.from(name.toUpperCase(), 'latin1')

function recordsOf(folder: Folder, usesAlternates: boolean): Buffer[] {
  const up = folder.parent ?? folder
  const named = [
    ...[...folder.folders].map(([name, each]) => ({
      name: identifier(name),
      make: (id: Buffer) => record(id, each.start, each.size, true, alternateEntry(each)),
    })),
    ...[...folder.files].map(([name, each]) => ({
      name: Buffer.concat([identifier(name), Buffer.from(';1')]),
      make: (id: Buffer) => record(id, each.start, each.size, false, alternateEntry(each)),
    })),
  ].sort((a, b) => Buffer.compare(a.name, b.name))
  return [
    record(Buffer.from([0]), folder.start, folder.size, true, usesAlternates && !folder.parent ? alternateMark : undefined),
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

interface Tree {
  readonly root: Folder
  readonly places: ReadonlyMap<string, Extent>
  readonly usesAlternates: boolean
}

function grow(files: readonly IsoFile[]): Tree {
  const make = (name: string, parent?: Folder): Folder => ({ name, parent, folders: new Map(), files: new Map(), start: 0, size: 0 })
  const root = make('')
  const places = new Map<string, Extent>()
  const short = new Map<string, string>()
  /** Folders and files of a folder never share a shortened name, nor do its files. */
  const fitting = (folder: string, name: string): { name: string; alternate?: string } => {
    if (plainName.test(name)) return { name }
    if (!alternateName.test(name) || /^\.\.?$/.test(name)) throw new IsoError(`"${name}" cannot be the name of a file`)
    const known = short.get(`${folder}/${name}`) ?? `_${short.size}`
    short.set(`${folder}/${name}`, known)
    return { name: known, alternate: name }
  }
  for (const { path, content } of files) {
    const names = path.split('/')
    const last = names.pop() ?? ''
    let at = root
    for (const [index, each] of names.entries()) {
      const { name, alternate } = fitting(names.slice(0, index).join('/'), each)
      const below = at.folders.get(name) ?? { ...make(name, at), alternate }
      at.folders.set(name, below)
      at = below
    }
    const { name, alternate } = fitting(names.join('/'), last)
    if (at.files.has(name)) throw new IsoError(`path "${path}" is there twice`)
    const size = content instanceof Uint8Array ? content.length : content.size
    if (size > 0xffff_ffff) throw new IsoError(`"${path}" has 4 GiB or more, which ISO 9660 cannot hold`)
    const place = { start: 0, size, alternate }
    at.files.set(name, place)
    places.set(path, place)
  }
  return { root, places, usesAlternates: short.size > 0 }
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
    ...[Buffer.from([0]), text('', 32), text(label, 32), Buffer.alloc(8), bothOrders(sectors(size)), Buffer.alloc(32)],
    ...[u16(1), u16(1), u16(sector), bothOrders(table.size), little, big],
    record(Buffer.from([0]), root.start, root.size, true),
    ...[text('', 128), text('', 128), text('', 128), text('', 128), text('', 37), text('', 37), text('', 37)],
    ...[noDate, noDate, noDate, noDate, Buffer.from([1])],
  ])
}

/** The image, as pieces in their order. */
export function makeIso(parts: IsoParts): Segment[] {
  if (parts.efi.size % sector) throw new IsoError('the EFI system partition is no multiple of 2 KiB')
  const { root, places, usesAlternates } = grow(parts.files)
  const folders = byDepth(root)
  const tableSize = pathTable(folders, false).length
  let next = systemArea + 4 // three descriptors and the catalog
  const [little, big] = [next, next + sectors(tableSize)]
  next += 2 * sectors(tableSize)
  for (const folder of folders) {
    folder.size = packed(recordsOf(folder, usesAlternates)).length
    folder.start = next
    next += sectors(folder.size)
  }
  const grub = parts.grub && next
  next += sectors(parts.grub?.medium.length ?? 0)
  const own: Buffer[] = []
  const starts = new Map<string, number>()
  for (const { path, content, room = 0 } of parts.files) {
    if (!(content instanceof Uint8Array)) continue
    starts.set(path, next)
    const held = roundUp(Math.max(content.length, room))
    own.push(Buffer.concat([content, Buffer.alloc(held - content.length)]))
    next += sectors(held)
  }
  const middle = next
  const others: Segment[] = []
  for (const { path, content } of parts.files) {
    if (content instanceof Uint8Array || !('file' in content)) continue
    starts.set(path, next)
    const { file, size } = content
    others.push({ file, offset: 0, length: size }, { bytes: Buffer.alloc(roundUp(size) - size) })
    next += sectors(size)
  }
  const efi = next
  for (const { path, content } of parts.files) {
    const shared = !(content instanceof Uint8Array) && 'offset' in content ? content.offset : undefined
    if (shared !== undefined && shared % sector) throw new IsoError(`"${path}" does not begin at a multiple of 2 KiB`)
    present(places.get(path), `"${path}"`).start =
      shared === undefined ? present(starts.get(path), `start of "${path}"`) : efi + shared / sector
  }
  const area = Buffer.alloc(systemArea * sector)
  masterBootRecord({ ...parts, grubSector: parts.grub?.hybrid }, grub, efi).copy(area)
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
    ...folders.map((folder) => packed(recordsOf(folder, usesAlternates))),
    ...(parts.grub && grub !== undefined ? [placedGrub(parts.grub.medium, grub)] : []),
    ...own,
  ])
  if (head.length !== middle * sector) throw new IsoError('the parts do not lie where they were planned')
  return [{ bytes: head }, ...others, { file: parts.efi.file, offset: 0, length: parts.efi.size }]
}
