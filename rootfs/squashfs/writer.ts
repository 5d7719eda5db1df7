/**
 * A SquashFS 4.0 image (kernel Documentation/filesystems/squashfs.rst, fs/squashfs/squashfs_fs.h) written from a tree:
 * no times, sorted, no extended attributes, so equal trees give equal bytes. Files of a block or more keep their own
 * blocks; smaller ones share fragment blocks; equal files are stored once. Written here rather than by mksquashfs
 * because blocks can then be remembered one by one.
 */
import { open } from 'node:fs/promises'
import { hashOf } from '../build/cache.ts'
import { present } from '../build/present.ts'
import { contentSize, sourceOf, type TreeEntry } from '../build/tree.ts'
import type { Block, BlockPress } from './blocks.ts'
import { Metadata, type Place } from './metadata.ts'

const magic = 0x73717368 // SQUASHFS_MAGIC
const noXattrs = 0x200 // SQUASHFS_NO_XATTR
const uncompressedBlock = 1 << 24 // SQUASHFS_COMPRESSED_BIT_BLOCK
const noFragment = 0xffffffff // SQUASHFS_INVALID_FRAG
const noXattr = 0xffffffff // SQUASHFS_INVALID_XATTR
const absent = 0xffffffffffffffffn // SQUASHFS_INVALID_BLK
const superblockSize = 96
const inodeTypes = { dir: 1, file: 2, symlink: 3 } as const
const linkedFile = 9 // SQUASHFS_LREG_TYPE, for files with several names

/** How an image is written. */
export interface SquashfsOptions {
  /** A power of two from 4 KiB to 1 MiB. */
  blockSize: number
  press: BlockPress
  /** Called after each block of data: bytes of content done, and of all. */
  progress?: (done: number, total: number) => void
}

/** What came of it. */
export interface SquashfsResult {
  size: number
  /** Stored bytes of each file with bytes of its own; fragments are shared out by size. */
  stored: Map<string, number>
}

interface Content {
  size: number
  /** Where the data blocks begin. */
  start: number
  sizes: number[]
  fragment?: { index: number; offset: number }
}

interface Directory {
  entry: TreeEntry
  children: Directory[]
  number: number
  /** Set once the inode of a file with several names is written. */
  place?: Place
  /** The one whose inode this is, when it is a further name. */
  original?: Directory
  names: number
}

/** An image would not fit the format. */
export class SquashfsError extends Error {
  override name = 'SquashfsError'
}

/** Writes the entries (sorted, with parents) as an image at `path`. */
export async function writeSquashfs(path: string, entries: readonly TreeEntry[], options: SquashfsOptions): Promise<SquashfsResult> {
  const { pressSmall } = options.press.compressor
  const output = await open(path, 'w', 0o644)
  let position = 0
  const append = async (bytes: Uint8Array) => {
    await output.write(bytes, 0, bytes.length, position)
    position += bytes.length
  }
  try {
    await append(new Uint8Array(superblockSize))
    const data = await writeData(entries, options, append, () => position)
    const ids = new Map<number, number>()
    const inodes = new Metadata(pressSmall)
    const directories = new Metadata(pressSmall)
    const root = grow(entries)
    const rootPlace = writeInodes(root, entries.length + 2, data.contents, ids, inodes, directories)
    const inodeTable = position
    await append(inodes.finish())
    const directoryTable = position
    await append(directories.finish())
    const fragmentTable = await appendIndexed(data.fragments, 16, pressSmall, append, () => position)
    const idTable = await appendIndexed(
      [...ids.keys()].map((id) => u32(id)),
      4,
      pressSmall,
      append,
      () => position,
    )
    const superblock = Buffer.alloc(superblockSize)
    let at = 0
    const u32s = [magic, entries.filter((entry) => !entry.linkTo).length + 1, 0, options.blockSize, data.fragments.length]
    for (const value of u32s) at = superblock.writeUInt32LE(value, at)
    const u16s = [options.press.compressor.id, Math.log2(options.blockSize), noXattrs, ids.size, 4, 0]
    for (const value of u16s) at = superblock.writeUInt16LE(value, at)
    const rootReference = (BigInt(rootPlace.block) << 16n) | BigInt(rootPlace.offset)
    const used = BigInt(position)
    const u64s = [rootReference, used, BigInt(idTable), absent, BigInt(inodeTable), BigInt(directoryTable)]
    for (const value of u64s) at = superblock.writeBigUInt64LE(value, at)
    at = superblock.writeBigUInt64LE(data.fragments.length ? BigInt(fragmentTable) : absent, at)
    superblock.writeBigUInt64LE(absent, at) // no table for NFS
    const padding = (4096 - (position % 4096)) % 4096 // block devices are read by pages
    if (padding) await append(new Uint8Array(padding))
    await output.write(superblock, 0, superblockSize, 0)
    return { size: position, stored: data.stored }
  } finally {
    await output.close()
  }
}

/** A file's bytes in pieces of at most `size`. */
async function* pieces(entry: TreeEntry, size: number): AsyncGenerator<Uint8Array> {
  if (entry.bytes) {
    for (let at = 0; at < entry.bytes.length; at += size) yield entry.bytes.subarray(at, at + size)
    return
  }
  const file = await open(sourceOf(entry), 'r')
  try {
    for (let at = 0; ; ) {
      const piece = new Uint8Array(size)
      let filled = 0
      while (filled < size) {
        const { bytesRead } = await file.read(piece, filled, size - filled, at + filled)
        if (!bytesRead) break
        filled += bytesRead
      }
      if (filled) yield piece.subarray(0, filled)
      if (filled < size) return
      at += filled
    }
  } finally {
    await file.close()
  }
}

async function writeData(
  entries: readonly TreeEntry[],
  { blockSize, press, progress }: SquashfsOptions,
  append: (bytes: Uint8Array) => Promise<void>,
  position: () => number,
) {
  const contents = new Map<string, Content>()
  const byHash = new Map<string, Content>()
  const fragments: Buffer[] = []
  const stored = new Map<string, number>()
  const files = entries.filter((entry) => entry.type === 'file' && !entry.linkTo)
  const sizes = files.map(contentSize)
  const total = sizes.reduce((sum, size) => sum + size, 0)
  let done = 0
  // Blocks are compressed some ahead of the one being written, and written in order.
  const ahead = Math.max(2, navigator.hardwareConcurrency * 2)
  const put = async (block: Block): Promise<number> => {
    await append(block.bytes)
    return block.bytes.length | (block.compressed ? 0 : uncompressedBlock)
  }

  let shared: { entry: TreeEntry; bytes: Uint8Array; content: Content }[] = []
  let sharedSize = 0
  const closeShared = async () => {
    if (!shared.length) return
    const start = position()
    const size = await put(await press.press(Buffer.concat(shared.map((each) => each.bytes))))
    const record = Buffer.alloc(16)
    record.writeBigUInt64LE(BigInt(start), 0)
    record.writeUInt32LE(size, 8)
    for (const each of shared) stored.set(each.entry.path, Math.round(((size & ~uncompressedBlock) * each.bytes.length) / sharedSize))
    fragments.push(record)
    shared = []
    sharedSize = 0
  }

  for (const [at, entry] of files.entries()) {
    const size = sizes[at] ?? 0
    if (size >= 2 ** 32) throw new SquashfsError(`file "${entry.path}" has ${size} bytes: at most 4 GiB fit`)
    if (size < blockSize) {
      const bytes = entry.bytes ?? new Uint8Array(await Bun.file(sourceOf(entry)).arrayBuffer())
      const hash = hashOf(bytes)
      const same = byHash.get(hash)
      done += size
      if (same || size === 0) {
        contents.set(entry.path, same ?? { size: 0, start: 0, sizes: [] })
        continue
      }
      if (sharedSize + size > blockSize) await closeShared()
      const content: Content = { size, start: 0, sizes: [], fragment: { index: fragments.length, offset: sharedSize } }
      shared.push({ entry, bytes, content })
      sharedSize += size
      byHash.set(hash, content)
      contents.set(entry.path, content)
      continue
    }
    const hasher = new Bun.CryptoHasher('sha256')
    for await (const piece of pieces(entry, 1 << 20)) hasher.update(piece)
    const hash = hasher.digest('hex')
    const same = byHash.get(hash)
    if (same) {
      contents.set(entry.path, same)
      done += size
      continue
    }
    const content: Content = { size, start: position(), sizes: [] }
    const waiting: { length: number; block: Promise<Block> }[] = []
    const settle = async () => {
      const next = waiting.shift()
      if (!next) return
      const { length, block } = next
      content.sizes.push(await put(await block))
      done += length
      progress?.(done, total)
    }
    for await (const piece of pieces(entry, blockSize)) {
      const block = press.press(piece)
      block.catch(() => {}) // awaited in order below
      waiting.push({ length: piece.length, block })
      if (waiting.length >= ahead) await settle()
    }
    while (waiting.length) await settle()
    stored.set(entry.path, position() - content.start)
    byHash.set(hash, content)
    contents.set(entry.path, content)
  }
  await closeShared()
  return { contents, fragments, stored }
}

/** Makes the directory tree out of sorted paths and numbers its inodes, children before parents. */
function grow(entries: readonly TreeEntry[]): Directory {
  const root: Directory = { entry: { path: '/', type: 'dir', mode: 0o755, part: 'base' }, children: [], number: 0, names: 1 }
  const byPath = new Map<string, Directory>([['', root]])
  for (const entry of entries) {
    const node: Directory = { entry, children: [], number: 0, names: 1 }
    byPath.set(entry.path, node)
    const parent = byPath.get(entry.path.slice(0, entry.path.lastIndexOf('/')))
    if (!parent) throw new SquashfsError(`entry "${entry.path}" comes before its directory`)
    parent.children.push(node)
  }
  for (const node of byPath.values()) {
    if (!node.entry.linkTo) continue
    const original = byPath.get(node.entry.linkTo)
    if (original?.entry.type !== 'file' || original.entry.linkTo) {
      throw new SquashfsError(`entry "${node.entry.path}": "${node.entry.linkTo}" is no file to link to`)
    }
    node.original = original
    original.names++
  }
  let next = 1
  const number = (node: Directory) => {
    node.children.sort((a, b) => Buffer.compare(nameOf(a.entry), nameOf(b.entry)))
    for (const child of node.children) number(child)
    if (!node.original) node.number = next++
  }
  number(root)
  for (const node of byPath.values()) if (node.original) node.number = node.original.number
  return root
}

function nameOf(entry: TreeEntry): Buffer {
  return Buffer.from(entry.path.slice(entry.path.lastIndexOf('/') + 1))
}

function writeInodes(
  root: Directory,
  beyond: number,
  contents: ReadonlyMap<string, Content>,
  ids: Map<number, number>,
  inodes: Metadata,
  directories: Metadata,
): Place {
  const idOf = (id: number) => {
    const known = ids.get(id) ?? ids.size
    ids.set(id, known)
    return known
  }
  const write = (node: Directory, parent: number): Place => {
    if (node.original) return write(node.original, parent)
    if (node.place) return node.place
    const { entry } = node
    const children = node.children.map((child) => ({ node: child, place: write(child, node.number) }))
    const head = Buffer.alloc(16)
    head.writeUInt16LE(node.names > 1 ? linkedFile : inodeTypes[entry.type], 0)
    head.writeUInt16LE(entry.mode & 0o7777, 2)
    head.writeUInt16LE(idOf(entry.uid ?? 0), 4)
    head.writeUInt16LE(idOf(entry.gid ?? 0), 6)
    head.writeUInt32LE(0, 8) // modification time
    head.writeUInt32LE(node.number, 12)
    if (entry.type === 'symlink') {
      const target = Buffer.from(entry.target ?? '')
      return inodes.write(Buffer.concat([head, u32(1), u32(target.length), target]))
    }
    if (entry.type === 'file') {
      const content = present(contents.get(entry.path), `content of "${entry.path}"`)
      if (content.start >= 2 ** 32) throw new SquashfsError(`file "${entry.path}" begins beyond 4 GiB`)
      if (node.names > 1) {
        const long = Buffer.alloc(40)
        long.writeBigUInt64LE(BigInt(content.start), 0)
        long.writeBigUInt64LE(BigInt(content.size), 8)
        long.writeUInt32LE(node.names, 24)
        long.writeUInt32LE(content.fragment?.index ?? noFragment, 28)
        long.writeUInt32LE(content.fragment?.offset ?? 0, 32)
        long.writeUInt32LE(noXattr, 36)
        node.place = inodes.write(Buffer.concat([head, long, ...content.sizes.map(u32)]))
        return node.place
      }
      const body = [content.start, content.fragment?.index ?? noFragment, content.fragment?.offset ?? 0, content.size, ...content.sizes]
      return inodes.write(Buffer.concat([head, ...body.map(u32)]))
    }
    const { place, size } = writeListing(children, directories)
    if (size + 3 > 0xffff) throw new SquashfsError(`directory "${entry.path}" has too many entries`)
    const body = Buffer.alloc(16)
    body.writeUInt32LE(place.block, 0)
    body.writeUInt32LE(2 + children.filter((child) => child.node.entry.type === 'dir').length, 4)
    body.writeUInt16LE(size + 3, 8)
    body.writeUInt16LE(place.offset, 10)
    body.writeUInt32LE(parent, 12)
    return inodes.write(Buffer.concat([head, body]))
  }
  return write(root, beyond)
}

/** A directory's listing: runs of at most 256 entries whose inodes lie in one metadata block. */
function writeListing(children: { node: Directory; place: Place }[], directories: Metadata): { place: Place; size: number } {
  const parts: Buffer[] = []
  for (let at = 0, end = 0; at < children.length; at = end) {
    const first = present(children[at], 'entry')
    const fits = ({ node, place }: (typeof children)[number]) =>
      place.block === first.place.block && inReach(node.number - first.node.number)
    const other = children.slice(at, at + 256).findIndex((child) => !fits(child))
    end = other < 0 ? Math.min(at + 256, children.length) : at + other
    parts.push(Buffer.concat([u32(end - at - 1), u32(first.place.block), u32(first.node.number)]))
    for (const { node, place } of children.slice(at, end)) {
      const name = nameOf(node.entry)
      if (name.length > 256) throw new SquashfsError(`name of "${node.entry.path}" is longer than 256 bytes`)
      const record = Buffer.alloc(8)
      record.writeUInt16LE(place.offset, 0)
      record.writeInt16LE(node.number - first.node.number, 2)
      record.writeUInt16LE(inodeTypes[node.entry.type], 4)
      record.writeUInt16LE(name.length - 1, 6)
      parts.push(record, name)
    }
  }
  const listing = Buffer.concat(parts)
  return { place: directories.write(listing), size: listing.length }
}

/** A table of fixed-size records: metadata blocks, then the list of their positions; the superblock points to that list. */
async function appendIndexed(
  records: readonly Uint8Array[],
  size: number,
  pressSmall: (content: Uint8Array) => Uint8Array,
  append: (bytes: Uint8Array) => Promise<void>,
  position: () => number,
): Promise<number> {
  const table = new Metadata(pressSmall)
  for (const record of records) table.write(record.subarray(0, size))
  const start = position()
  await append(table.finish())
  const index = position()
  const places = Buffer.alloc(8 * table.starts.length)
  table.starts.forEach((at, n) => {
    places.writeBigUInt64LE(BigInt(start + at), 8 * n)
  })
  await append(places)
  return index
}

/** Numbers of a run are stored as signed 16-bit differences. */
const inReach = (difference: number) => difference >= -0x8000 && difference <= 0x7fff

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
