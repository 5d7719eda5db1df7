/** The files of an ISO 9660 image (ECMA-119) and where they lie, so that they can be read and changed in place. */
import { DecodeError } from '../decode-error.ts'
import type { ReadAt } from '../tar/read.ts'

/** A file of an image. Offsets and sizes are in bytes. */
export interface IsoPlace {
  readonly offset: number
  readonly size: number
  /** Bytes up to where something else begins. */
  readonly room: number
  /** Where the image has the size of the file: 32 bits in little endian and the same in big endian. */
  readonly sizeOffset: number
}

const sector = 2048
const firstDescriptor = 16
const descriptorLimit = 16
/** Most bytes of a folder, most folders and most files. */
const folderLimit = 1 << 20
const folderCount = 1000
const fileCount = 10_000

const wrong = (offset: number, detail: string) => new DecodeError('ISO 9660 image', offset, detail)

interface Extent {
  readonly offset: number
  readonly size: number
}

/** The files of an image of `size` bytes by path, in small letters and without versions. Throws DecodeError. */
export async function readIsoFiles(read: ReadAt, size: number): Promise<Map<string, IsoPlace>> {
  const { root, starts } = await readDescriptors(read, size)
  const found = new Map<string, Extent & { sizeOffset: number }>()
  const waiting = [{ path: '', extent: root }]
  const seen = new Set<number>()
  for (let folder = waiting.pop(); folder; folder = waiting.pop()) {
    const { offset, size: length } = folder.extent
    if (seen.has(offset) || seen.size >= folderCount || length > folderLimit || offset + length > size)
      throw wrong(offset, 'a folder is too large, lies outside or is there twice')
    seen.add(offset)
    const records = parseIsoRecords(Buffer.from(await read(offset, length)))
    for (const { name, extent, folder: isFolder, sizeAt } of records) {
      const path = `${folder.path}${name}`
      if (isFolder) waiting.push({ path: `${path}/`, extent })
      else {
        if (extent.offset + extent.size > size || found.size >= fileCount)
          throw wrong(offset + sizeAt, `"${path}" lies outside, or is one too many`)
        found.set(path, { ...extent, sizeOffset: offset + sizeAt })
      }
    }
  }
  const all = [...new Set([...starts, ...seen, ...[...found.values()].map(({ offset }) => offset), size])].sort((a, b) => a - b)
  const next = new Map(all.map((start, at) => [start, all[at + 1] ?? size]))
  return new Map(
    [...found].map(([path, place]) => [path, { ...place, room: place.size === 0 ? 0 : (next.get(place.offset) ?? size) - place.offset }]),
  )
}

/** The root folder, and where a firmware begins to read by itself. */
async function readDescriptors(read: ReadAt, size: number): Promise<{ root: Extent; starts: number[] }> {
  let root: Extent | undefined
  const starts: number[] = []
  for (let at = firstDescriptor; at < firstDescriptor + descriptorLimit && (at + 1) * sector <= size; at++) {
    const bytes = Buffer.from(await read(at * sector, sector))
    if (bytes.toString('latin1', 1, 6) !== 'CD001') break
    if (bytes[0] === 255) break
    if (bytes[0] === 1) root = extentOf(bytes, 156)
    if (bytes[0] !== 0 || !bytes.toString('latin1', 7, 39).startsWith('EL TORITO SPECIFICATION')) continue
    const catalog = bytes.readUInt32LE(71) * sector
    if (catalog + sector > size) throw wrong(at * sector, 'the boot catalog lies outside')
    const entries = Buffer.from(await read(catalog, sector))
    for (let entry = 32; entry < sector; entry += 32) if (entries[entry] === 0x88) starts.push(entries.readUInt32LE(entry + 8) * sector)
  }
  if (!root) throw wrong(firstDescriptor * sector, 'no primary volume descriptor')
  return { root, starts }
}

const extentOf = (bytes: Buffer, record: number): Extent => ({
  offset: bytes.readUInt32LE(record + 2) * sector,
  size: bytes.readUInt32LE(record + 10),
})

/** The records of a folder (ECMA-119, 9.1), but for itself and its parent. `sizeAt` is an offset in the folder. Throws DecodeError. */
export function parseIsoRecords(bytes: Buffer): { name: string; extent: Extent; folder: boolean; sizeAt: number }[] {
  const records = []
  for (let at = 0; at < bytes.length; ) {
    const length = bytes[at] ?? 0
    if (length === 0) {
      at = (Math.floor(at / sector) + 1) * sector
      continue
    }
    const nameLength = bytes[at + 32] ?? 0
    if (length < 34 || at + length > bytes.length || nameLength === 0 || 33 + nameLength > length) throw wrong(at, 'a record is cut off')
    const name = bytes
      .toString('latin1', at + 33, at + 33 + nameLength)
      .toLowerCase()
      .replace(/;\d+$/, '')
    const folder = ((bytes[at + 25] ?? 0) & 2) !== 0
    if (name !== '\0' && name !== '\x01') records.push({ name, extent: extentOf(bytes, at), folder, sizeAt: at + 10 })
    at += length
  }
  return records
}

/** A number of 32 bits in both orders of bytes (ECMA-119, 7.3.3). */
export function bothOrders(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt32LE(value, 0)
  bytes.writeUInt32BE(value, 4)
  return bytes
}

/** What differs when a file gets other content in its place. Throws RangeError when there is no room. */
export function replaceIsoFile(place: IsoPlace, content: Uint8Array): { offset: number; bytes: Uint8Array }[] {
  if (content.length > place.room) throw new RangeError(`${content.length} bytes in place of ${place.room}`)
  const left = Math.max(0, place.size - content.length)
  return [
    { offset: place.sizeOffset, bytes: bothOrders(content.length) },
    { offset: place.offset, bytes: Buffer.concat([content, Buffer.alloc(left)]) },
  ]
}
