/**
 * The file system, as passed to os/. Fast calls are synchronous; calls that may wait for a disk are not.
 * Every failure is a SystemError.
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  createReadStream,
  createWriteStream,
  type Dirent,
  existsSync,
  fstatSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  type ReadStream,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  renameSync,
  rmdirSync,
  type Stats,
  statfsSync,
  statSync,
  symlinkSync,
  unlinkSync,
  type WriteStream,
  writeSync,
} from 'node:fs'
import { open, rename, rm, unlink } from 'node:fs/promises'
import { constants as system } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { failedWith } from '../../wire/errno.ts'
import { check, cString, libc, quoted } from '../libc.ts'
import { SystemError, toSystemError, translated } from '../system-error.ts'

const c = libc({
  mknod: { args: ['ptr', 'u32', 'u64'], returns: 'i32' },
  sync: { args: [], returns: 'void' },
  fallocate: { args: ['i32', 'i32', 'i64', 'i64'], returns: 'i32' },
})

/** Permissions and owner of a file or folder to create. */
export interface Ownership {
  mode?: number
  uid?: number | undefined
  gid?: number | undefined
}

/** Default size limit for reading a whole file. */
const defaultLimit = 64 << 20

/** Reads a whole file, refused (EFBIG) beyond `limit` bytes; works for /proc and /sys, where sizes are 0. */
export function read(path: string, { limit = defaultLimit } = {}): Uint8Array {
  return translated('read', path, () => {
    const fd = openSync(path, 'r')
    try {
      const chunks: Buffer[] = []
      let total = 0
      let size = Math.max(4096, Math.min(fstatSync(fd).size + 1, 1 << 20))
      for (;;) {
        const chunk = Buffer.allocUnsafe(size)
        const count = readSync(fd, chunk, 0, size, null)
        if (count === 0) return Buffer.concat(chunks)
        total += count
        if (total > limit) throw new SystemError('read', 'EFBIG', quoted(path), `larger than ${limit} bytes`)
        chunks.push(chunk.subarray(0, count))
        size = Math.min(size * 2, 1 << 20)
      }
    } finally {
      closeSync(fd)
    }
  })
}

/** A whole file as text. */
export function readText(path: string, options?: { limit?: number }): string {
  return Buffer.from(read(path, options)).toString()
}

/** As readText; undefined when there is no such file. */
export function readTextIfThere(path: string, options?: { limit?: number }): string | undefined {
  try {
    return readText(path, options)
  } catch (error) {
    if (failedWith(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  }
}

/** A file that stays open, even when it is renamed. */
export interface FileHandle {
  readonly ino: number
  size(): number
  /** At most `length` bytes from `offset`; fewer at the end. */
  read(offset: number, length: number): Uint8Array
  close(): void
}

/**
 * Opens a file for random access. With `below`, only a regular file in that folder: the last component is not a link, and the
 * opened file is inside the folder whatever the other components lead through (other users may write to the folder).
 */
export function openHandle(path: string, { below }: { below?: string | undefined } = {}): FileHandle {
  return translated('open', path, () => {
    const guard = below === undefined ? 0 : constants.O_NOFOLLOW | constants.O_NONBLOCK // a FIFO would wait for its writer
    const fd = openSync(path, constants.O_RDONLY | guard)
    if (below !== undefined && !(fstatSync(fd).isFile() && readlinkSync(`/proc/self/fd/${fd}`).startsWith(`${realpathSync(below)}/`))) {
      closeSync(fd)
      throw new SystemError('open', system.errno.ELOOP, quoted(path), `it is no file below "${below}"`)
    }
    return {
      ino: fstatSync(fd).ino,
      size: () => fstatSync(fd).size,
      read: (offset, length) =>
        translated('read', path, () => {
          const buffer = Buffer.allocUnsafe(Math.max(0, length))
          return buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, offset))
        }),
      close: () => closeSync(fd),
    }
  })
}

/** Writes to an existing file in one write(2), which /proc and /sys require. */
export function writeInto(path: string, text: string): void {
  translated('write', path, () => {
    const fd = openSync(path, constants.O_WRONLY | constants.O_TRUNC)
    try {
      writeSync(fd, text)
    } finally {
      closeSync(fd)
    }
  })
}

/** Appends to a file, which is created when it does not exist. A link is not followed: pods may write to the folders of logs. */
export function append(path: string, data: string | Uint8Array, { mode = 0o644 }: Ownership = {}): void {
  translated('append', path, () => {
    const fd = openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW, mode)
    try {
      const bytes = typeof data === 'string' ? Buffer.from(data) : data
      for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
    } finally {
      closeSync(fd)
    }
  })
}

/** Replaces a file so that readers see the old or the new contents, never a part, also after a power cut. */
export async function writeAtomic(path: string, data: string | Uint8Array, { mode = 0o644, uid, gid }: Ownership = {}): Promise<void> {
  const folder = dirname(path)
  const draft = join(folder, `.${basename(path)}.${process.pid}.${Bun.randomUUIDv7()}`)
  try {
    const file = await open(draft, 'wx', 0o600)
    try {
      await file.writeFile(data)
      if (uid !== undefined || gid !== undefined) await file.chown(uid ?? -1, gid ?? -1)
      await file.chmod(mode)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
    await syncFolder(folder)
  } catch (error) {
    await unlink(draft).catch(() => {}) // the draft may not exist
    throw toSystemError('write', path, error)
  }
}

/** Makes what was written to a file durable, and its name in its folder. */
export async function syncFile(path: string): Promise<void> {
  try {
    await syncFolder(path)
    await syncFolder(dirname(path))
  } catch (error) {
    throw toSystemError('sync', path, error)
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** A range of a file; shorter at its end. It is opened each time: the page cache makes that cheap. */
export async function readSlice(path: string, offset: number, length: number): Promise<Uint8Array> {
  try {
    return new Uint8Array(
      await Bun.file(path)
        .slice(offset, offset + length)
        .arrayBuffer(),
    )
  } catch (error) {
    throw toSystemError('read', path, error)
  }
}

/** Whether a path exists (a dangling link does not). */
export function exists(path: string): boolean {
  return existsSync(path)
}

/** stat(2). */
export function stat(path: string): Stats {
  return translated('stat', path, () => statSync(path))
}

/** lstat(2): of the link itself. */
export function lstat(path: string): Stats {
  return translated('lstat', path, () => lstatSync(path))
}

/** As lstat; undefined when there is nothing at the path. */
export function lstatIfThere(path: string): Stats | undefined {
  try {
    return lstat(path)
  } catch (error) {
    if (failedWith(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  }
}

/** The names in a folder, sorted. */
export function list(path: string): string[] {
  return translated('list', path, () => readdirSync(path)).sort()
}

/** The entries of a folder with their types, sorted by name. */
export function listEntries(path: string): Dirent[] {
  return translated('list', path, () => readdirSync(path, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** An entry found by a walk. */
export interface WalkEntry {
  path: string
  /** Path relative to the start of the walk, '' for the start itself. */
  relative: string
  depth: number
  stats?: Stats | undefined
  /** Why it or its folder could not be read. */
  error?: Error | undefined
}

/** Everything at and below a path, folders before their contents, sorted, links not followed; yields to the event loop between folders. */
export async function* walk(path: string, { depth = 256, oneFileSystem = false } = {}): AsyncGenerator<WalkEntry> {
  let device: number | undefined
  const waiting = [{ path, relative: '', depth: 0 }]
  for (let at = waiting.pop(); at; at = waiting.pop()) {
    let stats: Stats | undefined
    let names: string[] = []
    let error: Error | undefined
    try {
      stats = lstat(at.path)
      device ??= stats.dev
      if (stats.isDirectory() && at.depth < depth && !(oneFileSystem && stats.dev !== device)) {
        names = list(at.path)
        await new Promise(setImmediate)
      }
    } catch (problem) {
      if (!(problem instanceof Error)) throw problem
      error = problem
    }
    yield { ...at, stats, error }
    for (const name of names.reverse()) {
      waiting.push({ path: join(at.path, name), relative: at.relative ? `${at.relative}/${name}` : name, depth: at.depth + 1 })
    }
  }
}

/** Creates a folder and its parents; mode and owner are set on the last, also when it existed. */
export function mkdirAll(path: string, { mode, uid, gid }: Ownership = {}): void {
  translated('mkdir', path, () => {
    mkdirSync(path, { recursive: true, mode: 0o755 })
    if (uid !== undefined || gid !== undefined) chownSync(path, uid ?? -1, gid ?? -1)
    if (mode !== undefined) chmodSync(path, mode)
  })
}

/** Removes a file, a link, or a folder with its contents, if it exists. Does not unmount: unmount first. */
export async function remove(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 0 })
  } catch (error) {
    throw toSystemError('remove', path, error)
  }
}

/** unlink(2). */
export function removeFile(path: string): void {
  translated('unlink', path, () => unlinkSync(path))
}

/** rmdir(2): only an empty folder. */
export function removeFolder(path: string): void {
  translated('rmdir', path, () => rmdirSync(path))
}

/** rename(2). */
export function move(from: string, to: string): void {
  translated('rename', `${from} to ${to}`, () => renameSync(from, to))
}

/** Creates a symbolic link at `path`, atomically replacing an existing link. */
export function symlink(target: string, path: string): void {
  translated('symlink', path, () => {
    if (lstatIfThere(path) === undefined) return symlinkSync(target, path)
    if (!lstatSync(path).isSymbolicLink()) throw new SystemError('symlink', 'EEXIST', quoted(path), 'something else is there')
    if (readlinkSync(path) === target) return
    const draft = `${path}.${process.pid}`
    symlinkSync(target, draft)
    renameSync(draft, path)
  })
}

/** readlink(2). */
export function readlink(path: string): string {
  return translated('readlink', path, () => readlinkSync(path))
}

/** The path with all links resolved. */
export function realpath(path: string): string {
  return translated('realpath', path, () => realpathSync(path))
}

/** chmod(2). */
export function chmod(path: string, mode: number): void {
  translated('chmod', path, () => chmodSync(path, mode))
}

/** chown(2). */
export function chown(path: string, uid: number, gid: number): void {
  translated('chown', path, () => chownSync(path, uid, gid))
}

/** lchown(2): of the link itself. */
export function lchown(path: string, uid: number, gid: number): void {
  translated('lchown', path, () => lchownSync(path, uid, gid))
}

const kinds = { character: 0o020000, block: 0o060000, fifo: 0o010000 } as const

/** mknod(2), with exactly this mode. */
export function mknod(
  path: string,
  kind: keyof typeof kinds,
  major: number,
  minor: number,
  { mode = 0o600, uid, gid }: Ownership = {},
): void {
  const ma = BigInt(major)
  const mi = BigInt(minor)
  // gnu_dev_makedev: 12 + 20 bits each, split around the old 8:8 layout
  const device = ((ma & 0xfffn) << 8n) | (mi & 0xffn) | ((mi & ~0xffn) << 12n) | ((ma & ~0xfffn) << 32n)
  check('mknod', c().mknod(cString(path), kinds[kind] | mode, device), quoted(path))
  translated('chmod', path, () => {
    chmodSync(path, mode)
    if (uid !== undefined || gid !== undefined) chownSync(path, uid ?? -1, gid ?? -1)
  })
}

/** Usage of a file system. */
export interface FileSystemUsage {
  /** f_type, as `0x…` magic number. */
  type: number
  blockSize: number
  /** Bytes. */
  size: number
  free: number
  available: number
  files: number
  filesFree: number
}

/** statfs(2). */
export function statfs(path: string): FileSystemUsage {
  const { type, bsize, blocks, bfree, bavail, files, ffree } = translated('statfs', path, () => statfsSync(path))
  return { type, blockSize: bsize, size: blocks * bsize, free: bfree * bsize, available: bavail * bsize, files, filesFree: ffree }
}

/** fallocate(2): a file that takes this space on the disk, without anything being written to it. Nothing is left of one that fails. */
export function allocate(path: string, size: number, { mode = 0o600 }: Ownership = {}): void {
  const fd = translated('open', path, () =>
    openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW, mode),
  )
  try {
    check('fallocate', c().fallocate(fd, 0, 0, size), quoted(path))
  } catch (error) {
    unlinkSync(path)
    throw error
  } finally {
    closeSync(fd)
  }
}

/** A stream of a file's bytes. */
export function openRead(path: string, { start, end }: { start?: number; end?: number } = {}): ReadStream {
  return createReadStream(path, { start, end, highWaterMark: 64 << 10 })
}

/** A stream into a file, which is created or truncated. */
export function openWrite(path: string, { mode = 0o644, flags = 'w' } = {}): WriteStream {
  return createWriteStream(path, { mode, flags })
}

/** sync(2): flushes everything written to its disk. */
export function syncAll(): void {
  c().sync()
}
