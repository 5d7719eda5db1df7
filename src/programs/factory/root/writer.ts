/**
 * A SquashFS 4.0 image (kernel Documentation/filesystems/squashfs.rst, fs/squashfs/squashfs_fs.h) written from a tree:
 * no times, sorted, no extended attributes, so equal trees give equal bytes. Files of a block or more keep their own
 * blocks; smaller ones share fragment blocks; equal files are stored once. Written here rather than by mksquashfs
 * because blocks can then be remembered one by one.
 */
import { open } from 'node:fs/promises'
import { DataWriter, type Output, type SquashfsOptions } from './data.ts'
import { growTree, InodeWriter } from './inodes.ts'
import { Metadata, type Place, u32 } from './metadata.ts'
import type { SquashfsBase } from './read.ts'
import { contentSize, type TreeEntry } from './tree.ts'

const magic = 0x73717368 // SQUASHFS_MAGIC
const noXattrs = 0x200 // SQUASHFS_NO_XATTR
const absent = 0xffffffffffffffffn // SQUASHFS_INVALID_BLK
const superblockSize = 96

/** What came of it. */
export interface SquashfsResult {
  size: number
  /** Stored bytes of each file with bytes of its own; fragments are shared out by size. */
  stored: Map<string, number>
}

/** An image whose data are kept: `path` holds them already, up to where they end. */
export type Kept = Pick<SquashfsBase, 'contents' | 'fragments' | 'dataEnd'>

/** Writes the entries (sorted, with parents) as an image at `path`. Files that `kept` has a content of are not read. */
export async function writeSquashfs(
  path: string,
  entries: readonly TreeEntry[],
  options: SquashfsOptions,
  kept?: Kept,
): Promise<SquashfsResult> {
  const { pressSmall } = options.press.compressor
  const file = await open(path, kept ? 'r+' : 'w', 0o644)
  let position = kept?.dataEnd ?? 0
  const output: Output = {
    get position() {
      return position
    },
    async append(bytes) {
      await file.write(bytes, 0, bytes.length, position)
      position += bytes.length
    },
  }
  try {
    if (kept) await file.truncate(position)
    else await output.append(new Uint8Array(superblockSize))
    const files = entries.filter((entry) => entry.type === 'file' && !entry.linkTo && !kept?.contents.has(entry.path))
    const total = files.reduce((sum, entry) => sum + contentSize(entry), 0)
    const data = new DataWriter(options, output, total, kept)
    for (const entry of files) await data.write(entry)
    await data.close()
    const [inodes, directories] = [new Metadata(pressSmall), new Metadata(pressSmall)]
    const writer = new InodeWriter(data.contents, inodes, directories)
    const rootPlace = writer.write(growTree(entries), entries.length + 2)
    const inodeTable = position
    await output.append(inodes.finish())
    const directoryTable = position
    await output.append(directories.finish())
    const fragmentTable = await appendIndexed(data.fragments, pressSmall, output)
    const idTable = await appendIndexed(writer.ids.map(u32), pressSmall, output)
    const superblock = superblockOf({
      inodes: entries.filter((entry) => !entry.linkTo).length + 1,
      options,
      fragments: data.fragments.length,
      ids: writer.ids.length,
      root: rootPlace,
      size: position,
      tables: { id: idTable, inode: inodeTable, directory: directoryTable, fragment: fragmentTable },
    })
    const padding = (4096 - (position % 4096)) % 4096 // block devices are read by pages
    if (padding) await output.append(new Uint8Array(padding))
    await file.write(superblock, 0, superblockSize, 0)
    return { size: position, stored: data.stored }
  } finally {
    await file.close()
  }
}

/** Contents of the superblock: numbers of things, and where the tables begin. */
interface Layout {
  inodes: number
  options: SquashfsOptions
  fragments: number
  ids: number
  root: Place
  /** Bytes in use, without padding. */
  size: number
  tables: { id: number; inode: number; directory: number; fragment: number }
}

/** The superblock (struct squashfs_super_block). */
function superblockOf({ inodes, options, fragments, ids, root, size, tables }: Layout): Buffer {
  const bytes = Buffer.alloc(superblockSize)
  let at = 0
  for (const value of [magic, inodes, 0, options.blockSize, fragments]) at = bytes.writeUInt32LE(value, at)
  const u16s = [options.press.compressor.id, Math.log2(options.blockSize), noXattrs, ids, 4, 0]
  for (const value of u16s) at = bytes.writeUInt16LE(value, at)
  const rootReference = (BigInt(root.block) << 16n) | BigInt(root.offset)
  const u64s = [rootReference, BigInt(size), BigInt(tables.id), absent, BigInt(tables.inode), BigInt(tables.directory)]
  for (const value of u64s) at = bytes.writeBigUInt64LE(value, at)
  at = bytes.writeBigUInt64LE(fragments ? BigInt(tables.fragment) : absent, at)
  bytes.writeBigUInt64LE(absent, at) // no table for NFS
  return bytes
}

/** A table of fixed-size records: metadata blocks, then the list of their positions; the superblock points to that list. */
async function appendIndexed(
  records: readonly Uint8Array[],
  pressSmall: (content: Uint8Array) => Uint8Array,
  output: Output,
): Promise<number> {
  const table = new Metadata(pressSmall)
  for (const record of records) table.write(record)
  const start = output.position
  await output.append(table.finish())
  const index = output.position
  const places = Buffer.alloc(8 * table.starts.length)
  table.starts.forEach((at, n) => {
    places.writeBigUInt64LE(BigInt(start + at), 8 * n)
  })
  await output.append(places)
  return index
}
