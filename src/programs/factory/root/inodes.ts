/** The inodes and directories of an image. */

import type { Content } from './data.ts'
import { SquashfsError } from './error.ts'
import { type Metadata, type Place, u32 } from './metadata.ts'
import type { TreeEntry } from './tree.ts'

const noFragment = 0xffffffff // SQUASHFS_INVALID_FRAG
const noXattr = 0xffffffff // SQUASHFS_INVALID_XATTR
const inodeTypes = { dir: 1, file: 2, symlink: 3 } as const
const linkedFile = 9 // SQUASHFS_LREG_TYPE, for files with several names

/** An entry in the tree of directories. */
export interface Directory {
  entry: TreeEntry
  children: Directory[]
  number: number
  /** Set once the inode of a file with several names is written. */
  place?: Place
  /** The one whose inode this is, when it is a further name. */
  original?: Directory
  names: number
}

/** Makes the directory tree out of sorted paths and numbers its inodes, children before parents. */
export function growTree(entries: readonly TreeEntry[]): Directory {
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

/** Writes inodes and listings, children before their parents. */
export class InodeWriter {
  /** User and group ids in the order of their table. */
  readonly ids: number[] = []
  readonly #contents: ReadonlyMap<string, Content>
  readonly #inodes: Metadata
  readonly #directories: Metadata

  constructor(contents: ReadonlyMap<string, Content>, inodes: Metadata, directories: Metadata) {
    this.#contents = contents
    this.#inodes = inodes
    this.#directories = directories
  }

  /** Writes what lies below a node, then the node. `parent` is the number of its directory; for the root, one more than there are inodes. */
  write(node: Directory, parent: number): Place {
    if (node.original) return this.write(node.original, parent)
    if (node.place) return node.place
    const { entry } = node
    if (entry.type === 'symlink') {
      const target = Buffer.from(entry.target ?? '')
      return this.#inodes.write(Buffer.concat([this.#head(node), u32(1), u32(target.length), target]))
    }
    if (entry.type === 'file') return this.#file(node)
    const children = node.children.map((child) => ({ node: child, place: this.write(child, node.number) }))
    const head = this.#head(node)
    const { place, size } = writeListing(children, this.#directories)
    if (size + 3 > 0xffff) throw new SquashfsError(`directory "${entry.path}" has too many entries`)
    const body = Buffer.alloc(16)
    body.writeUInt32LE(place.block, 0)
    body.writeUInt32LE(2 + children.filter((child) => child.node.entry.type === 'dir').length, 4)
    body.writeUInt16LE(size + 3, 8)
    body.writeUInt16LE(place.offset, 10)
    body.writeUInt32LE(parent, 12)
    return this.#inodes.write(Buffer.concat([head, body]))
  }

  #file(node: Directory): Place {
    const { entry } = node
    const { start, size, sizes, fragment } = present(this.#contents.get(entry.path), `content of "${entry.path}"`)
    if (start >= 2 ** 32) throw new SquashfsError(`file "${entry.path}" begins beyond 4 GiB`)
    const { index, offset } = fragment ?? { index: noFragment, offset: 0 }
    if (node.names === 1) return this.#inodes.write(Buffer.concat([this.#head(node), ...[start, index, offset, size, ...sizes].map(u32)]))
    const long = Buffer.alloc(40)
    long.writeBigUInt64LE(BigInt(start), 0)
    long.writeBigUInt64LE(BigInt(size), 8)
    long.writeUInt32LE(node.names, 24)
    long.writeUInt32LE(index, 28)
    long.writeUInt32LE(offset, 32)
    long.writeUInt32LE(noXattr, 36)
    node.place = this.#inodes.write(Buffer.concat([this.#head(node), long, ...sizes.map(u32)]))
    return node.place
  }

  /** What every inode begins with. */
  #head({ entry, names, number }: Directory): Buffer {
    const head = Buffer.alloc(16)
    head.writeUInt16LE(names > 1 ? linkedFile : inodeTypes[entry.type], 0)
    head.writeUInt16LE(entry.mode & 0o7777, 2)
    head.writeUInt16LE(this.#idOf(entry.uid ?? 0), 4)
    head.writeUInt16LE(this.#idOf(entry.gid ?? 0), 6)
    head.writeUInt32LE(0, 8) // modification time
    head.writeUInt32LE(number, 12)
    return head
  }

  #idOf(id: number): number {
    const known = this.ids.indexOf(id)
    return known >= 0 ? known : this.ids.push(id) - 1
  }
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

/** Numbers of a run are stored as signed 16-bit differences. */
const inReach = (difference: number) => difference >= -0x8000 && difference <= 0x7fff

function present<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new SquashfsError(`${what} is missing`)
  return value
}
