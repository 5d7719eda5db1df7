/**
 * What a SquashFS 4.0 image holds (kernel Documentation/filesystems/squashfs.rst): its entries, and where the contents of files lie, so
 * that another image can be written that keeps them where they are. Only what the writer here writes is read.
 */
import type { ReadAt } from '../../../wire/tar/read.ts'
import type { Content } from './data.ts'
import { SquashfsError } from './error.ts'
import { metadataSize } from './metadata.ts'
import { parseDirectoryListing, parseInode } from './records.ts'
import type { TreeEntry } from './tree.ts'

/** Unpacks blocks of metadata that lie one behind the other; each but the last has 8 KiB. */
export type Unpack = (blocks: readonly Uint8Array[]) => Promise<Uint8Array>

/** An image as far as another one is made of it. */
export interface SquashfsBase {
  readonly blockSize: number
  /** The format's number of its compression. */
  readonly compression: number
  /** Sorted by path, without the root. */
  readonly entries: TreeEntry[]
  readonly contents: ReadonlyMap<string, Content>
  /** Records of the fragment table. */
  readonly fragments: readonly Buffer[]
  /** Where its data end. */
  readonly dataEnd: number
}

/** Of the tree, what the image itself has. */
export const systemPart = 'the system'

const magic = 0x73717368
const superblockSize = 96
/** Most bytes of a table as stored, and most entries. */
const tableLimit = 32 << 20
const entryLimit = 200_000
const depthLimit = 64
const storedBit = 0x8000
const fragmentSize = 16

const damaged = (detail: string) => new SquashfsError(`the root file system of the release: ${detail}`)

interface Table {
  readonly bytes: Buffer
  /** Number of the block that begins at an offset of the table as stored. */
  readonly blocks: ReadonlyMap<number, number>
}

/** Reads an image of `size` bytes, with the unpacker of its compression. Throws SquashfsError. */
export async function readSquashfsBase(read: ReadAt, size: number, unpackerOf: (compression: number) => Unpack): Promise<SquashfsBase> {
  const image = new Image(read, size)
  const head = await image.read(0, superblockSize)
  if (head.readUInt32LE(0) !== magic || head.readUInt16LE(28) !== 4) throw damaged('it is no SquashFS 4.0')
  const compression = head.readUInt16LE(20)
  const unpack = unpackerOf(compression)
  const place = (at: number) => Number(head.readBigUInt64LE(at))
  const [idIndex, inodeTable, directoryTable, fragmentIndex] = [48, 64, 72, 80].map(place) as [number, number, number, number]
  const fragmentCount = head.readUInt32LE(16)
  const ids = await image.indexed(idIndex, head.readUInt16LE(26) * 4, unpack)
  const fragments =
    fragmentCount === 0
      ? { bytes: Buffer.alloc(0), first: ids.first }
      : await image.indexed(fragmentIndex, fragmentCount * fragmentSize, unpack)
  const tables = {
    inodes: await image.table(inodeTable, directoryTable, unpack),
    directories: await image.table(directoryTable, fragments.first, unpack),
  }
  const blockSize = head.readUInt32LE(12)
  if (blockSize < 4096 || blockSize > 1 << 20 || (blockSize & (blockSize - 1)) !== 0) throw damaged(`its blocks have ${blockSize} bytes`)
  const walk = new Walk(tables, ids.bytes, blockSize)
  walk.folder('', head.readBigUInt64LE(32), 0)
  return {
    ...{ blockSize, compression, contents: walk.contents, dataEnd: inodeTable },
    entries: walk.entries.sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path))),
    fragments: Array.from({ length: fragmentCount }, (_, at) => fragments.bytes.subarray(at * fragmentSize, (at + 1) * fragmentSize)),
  }
}

/** The bytes of an image, and its tables. */
class Image {
  constructor(
    readonly source: ReadAt,
    readonly size: number,
  ) {}

  async read(offset: number, length: number): Promise<Buffer> {
    if (offset < 0 || length < 0 || length > tableLimit || offset + length > this.size)
      throw damaged(`${length} bytes at ${offset} lie outside`)
    return Buffer.from(await this.source(offset, length))
  }

  /** Blocks of metadata from one place to another. */
  async table(start: number, end: number, unpack: Unpack): Promise<Table> {
    const raw = await this.read(start, end - start)
    const blocks = new Map<number, number>()
    const parts: { bytes: Uint8Array; stored: boolean }[] = []
    for (let at = 0; at < raw.length; ) {
      const length = at + 2 <= raw.length ? raw.readUInt16LE(at) : 0
      const bytes = raw.subarray(at + 2, at + 2 + (length & ~storedBit))
      if (bytes.length === 0 || bytes.length !== (length & ~storedBit)) throw damaged('a block of metadata is cut off')
      blocks.set(at, parts.length)
      parts.push({ bytes, stored: (length & storedBit) !== 0 })
      at += 2 + bytes.length
    }
    const packed = parts.filter(({ stored }) => !stored).map(({ bytes }) => bytes)
    const unpacked = packed.length > 0 ? await unpack(packed) : new Uint8Array(0)
    let at = 0
    const whole = parts.map(({ bytes, stored }, index) => {
      if (stored) return bytes
      const part = unpacked.subarray(at, at + metadataSize)
      at += part.length
      if (index < parts.length - 1 && part.length !== metadataSize) throw damaged('a block of metadata is too short')
      return part
    })
    return { bytes: Buffer.concat(whole), blocks }
  }

  /** A table of `length` bytes whose blocks are listed at `index`. */
  async indexed(index: number, length: number, unpack: Unpack): Promise<{ bytes: Buffer; first: number }> {
    const list = await this.read(index, 8)
    const first = Number(list.readBigUInt64LE(0))
    const { bytes } = await this.table(first, index, unpack)
    if (bytes.length < length) throw damaged('a table is too short')
    return { bytes, first }
  }
}

/** Goes through the folders. */
class Walk {
  readonly entries: TreeEntry[] = []
  readonly contents = new Map<string, Content>()
  /** The first name of each file, by its number. */
  readonly #files = new Map<number, string>()
  readonly #folders = new Set<number>()

  constructor(
    readonly tables: { inodes: Table; directories: Table },
    readonly ids: Buffer,
    readonly blockSize: number,
  ) {}

  folder(path: string, reference: bigint, depth: number): void {
    const inode = parseInode(this.#from(this.tables.inodes, reference), this.blockSize)
    if (inode.type !== 'dir' || depth > depthLimit || this.#folders.has(inode.number))
      throw damaged(`"${path || '/'}" is no folder, or there twice`)
    this.#folders.add(inode.number)
    if (path !== '') this.#add({ path, type: 'dir', ...this.#common(inode) })
    if (inode.listing.size === 0) return
    const { block, offset, size } = inode.listing
    const listing = this.#from(this.tables.directories, (BigInt(block) << 16n) | BigInt(offset))
    if (listing.length < size) throw damaged(`the list of "${path}" is cut off`)
    for (const child of parseDirectoryListing(listing.subarray(0, size))) {
      const below = `${path}/${child.name}`
      if (child.folder) this.folder(below, child.reference, depth + 1)
      else this.#leaf(below, child.reference)
    }
  }

  #leaf(path: string, reference: bigint): void {
    const inode = parseInode(this.#from(this.tables.inodes, reference), this.blockSize)
    if (inode.type === 'dir') throw damaged(`"${path}" is a folder among files`)
    const common = this.#common(inode)
    if (inode.type === 'symlink') {
      this.#add({ path, type: 'symlink', ...common, target: inode.target })
      return
    }
    const first = this.#files.get(inode.number)
    if (first === undefined) this.#files.set(inode.number, path)
    // The writer looks at the content of a file by its first name only.
    if (first === undefined) this.contents.set(path, inode.content)
    this.#add({ path, type: 'file', ...common, ...(first === undefined ? { bytes: new Uint8Array(0) } : { linkTo: first }) })
  }

  #add(entry: Omit<TreeEntry, 'part'>): void {
    if (this.entries.length >= entryLimit) throw damaged(`it has more than ${entryLimit} entries`)
    this.entries.push({ ...entry, part: systemPart })
  }

  #common({ mode, uid, gid }: { mode: number; uid: number; gid: number }) {
    const id = (index: number) => {
      if (index * 4 + 4 > this.ids.length) throw damaged('an owner is not in its table')
      return this.ids.readUInt32LE(index * 4)
    }
    return { mode, uid: id(uid), gid: id(gid) }
  }

  #from({ bytes, blocks }: Table, reference: bigint): Buffer {
    const block = blocks.get(Number(reference >> 16n))
    const offset = Number(reference & 0xffffn)
    if (block === undefined || offset >= metadataSize) throw damaged('something leads into the middle of a block')
    return bytes.subarray(block * metadataSize + offset)
  }
}
