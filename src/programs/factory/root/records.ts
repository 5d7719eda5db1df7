/** Records of a SquashFS 4.0 image: inodes and the lists of folders (kernel fs/squashfs/squashfs_fs.h). */
import type { Content } from './data.ts'
import { SquashfsError } from './error.ts'

interface Common {
  readonly mode: number
  /** Places in the table of ids. */
  readonly uid: number
  readonly gid: number
  readonly number: number
}

/** A file, folder or symbolic link. */
export type Inode = Common &
  (
    | { readonly type: 'dir'; readonly listing: { block: number; offset: number; size: number } }
    | { readonly type: 'file'; readonly content: Content }
    | { readonly type: 'symlink'; readonly target: string }
  )

const cut = () => new SquashfsError('the root file system of the release: an inode or a list of a folder is cut off')
const noFragment = 0xffffffff
const [folder, file, symlink, linkedFile] = [1, 2, 3, 9]
const longestTarget = 4096
const longestFile = 2 ** 32

/** The inode that bytes begin with. Throws SquashfsError. */
export function parseInode(bytes: Buffer, blockSize: number): Inode {
  if (bytes.length < 16) throw cut()
  const kind = bytes.readUInt16LE(0)
  const common = { mode: bytes.readUInt16LE(2), uid: bytes.readUInt16LE(4), gid: bytes.readUInt16LE(6), number: bytes.readUInt32LE(12) }
  if (kind === folder) {
    if (bytes.length < 32) throw cut()
    // Three bytes of the size stand for "." and "..".
    const listing = { block: bytes.readUInt32LE(16), offset: bytes.readUInt16LE(26), size: Math.max(0, bytes.readUInt16LE(24) - 3) }
    return { type: 'dir', ...common, listing }
  }
  if (kind === symlink) {
    const length = bytes.length < 24 ? longestTarget + 1 : bytes.readUInt32LE(20)
    if (length > longestTarget || 24 + length > bytes.length) throw cut()
    return { type: 'symlink', ...common, target: bytes.toString('utf8', 24, 24 + length) }
  }
  if (kind === file || kind === linkedFile) return { type: 'file', ...common, content: contentOf(bytes, kind === linkedFile, blockSize) }
  throw new SquashfsError(`the root file system of the release: an inode of kind ${kind}, which mkimage.sh does not write`)
}

function contentOf(bytes: Buffer, long: boolean, blockSize: number): Content {
  const head = long ? 56 : 32
  if (bytes.length < head) throw cut()
  const start = long ? Number(bytes.readBigUInt64LE(16)) : bytes.readUInt32LE(16)
  const size = long ? Number(bytes.readBigUInt64LE(24)) : bytes.readUInt32LE(28)
  const index = bytes.readUInt32LE(long ? 44 : 20)
  const offset = bytes.readUInt32LE(long ? 48 : 24)
  const blocks = index === noFragment ? Math.ceil(size / blockSize) : Math.floor(size / blockSize)
  if (size >= longestFile || head + blocks * 4 > bytes.length) throw cut()
  const sizes = Array.from({ length: blocks }, (_, at) => bytes.readUInt32LE(head + at * 4))
  return { size, start, sizes, ...(index !== noFragment && { fragment: { index, offset } }) }
}

/** An entry of a folder: where its inode is, as in the superblock. */
export interface Listed {
  readonly name: string
  readonly folder: boolean
  readonly reference: bigint
}

/** The entries of a folder's list. Throws SquashfsError. */
export function parseDirectoryListing(bytes: Buffer): Listed[] {
  const found: Listed[] = []
  for (let at = 0; at < bytes.length; ) {
    if (at + 12 > bytes.length) throw cut()
    const count = bytes.readUInt32LE(at) + 1
    const block = BigInt(bytes.readUInt32LE(at + 4)) << 16n
    at += 12
    for (let n = 0; n < count; n++) {
      const length = at + 8 > bytes.length ? bytes.length : bytes.readUInt16LE(at + 6) + 1
      if (at + 8 + length > bytes.length) throw cut()
      const name = bytes.toString('utf8', at + 8, at + 8 + length)
      if (/[/\0]/.test(name) || name === '.' || name === '..')
        throw new SquashfsError('the root file system of the release: a name that is none')
      found.push({ name, folder: bytes.readUInt16LE(at + 4) === folder, reference: block | BigInt(bytes.readUInt16LE(at)) })
      at += 8 + length
    }
  }
  return found
}
