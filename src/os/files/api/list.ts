import type { Stats } from 'node:fs'
import { basename } from 'node:path'
import { machine as enums } from '../../../rpc/enums.ts'
import { type Method, readers, serverStream } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Kernel } from '../../kernel.ts'
import { absolute, translated } from '../path.ts'

const { Type } = enums.ListRequest

/** Lists directories and computes disk usage. */
export function listMethods({ files, xattr }: Pick<Kernel, 'files' | 'xattr'>): Method[] {
  return [
    serverStream('machine.MachineService/List', readers, async function* ({ root, recurse, recursionDepth, types, reportXattrs }) {
      const start = resolved(files, 'list', rooted(root))
      // A depth of zero or less means unlimited: clients send -1.
      const depth = !recurse ? 1 : recursionDepth > 0 ? recursionDepth : Number.POSITIVE_INFINITY
      for await (const { path, relative, stats, error } of files.walk(start, { depth })) {
        if (stats && types.length > 0 && !types.some((type) => isOf(stats, type))) continue
        yield {
          name: path,
          relativeName: relative || nameOf(start, stats),
          ...(stats && {
            size: stats.size,
            mode: goMode(stats),
            modified: Math.floor(stats.mtimeMs / 1000),
            isDir: stats.isDirectory(),
            uid: stats.uid,
            gid: stats.gid,
            link: stats.isSymbolicLink() ? files.readlink(path) : '',
          }),
          error: error?.message ?? '',
          xattrs: reportXattrs && stats ? extended(xattr, path) : [],
        }
      }
    }),
    serverStream('machine.MachineService/DiskUsage', readers, async function* ({ paths, recursionDepth, all, threshold }) {
      for (const root of paths.length > 0 ? paths : ['/']) {
        const start = rooted(root)
        try {
          yield* usage(files, resolved(files, 'measure', start), { levels: recursionDepth, all, threshold })
        } catch (error) {
          // A missing path must not keep the others from being measured.
          if (!(error instanceof RpcError)) throw error
          yield { name: start, relativeName: start, error: error.message }
        }
      }
    }),
  ]
}

/** A requested path; a relative one is taken relative to the root. */
function rooted(path: string): string {
  return absolute(path.startsWith('/') ? path : `/${path}`)
}

/** Start of a walk: a symbolic link is followed, since its target is meant. */
function resolved(files: Kernel['files'], action: string, path: string): string {
  return translated(action, path, () => (files.lstat(path).isSymbolicLink() ? files.realpath(path) : path))
}

/** Name of the start of a walk: `.` for a directory, else its own name. */
function nameOf(path: string, stats: Stats | undefined): string {
  return stats && !stats.isDirectory() ? basename(path) : '.'
}

function isOf(stats: Stats, type: number): boolean {
  if (type === Type.DIRECTORY) return stats.isDirectory()
  if (type === Type.SYMLINK) return stats.isSymbolicLink()
  return stats.isFile()
}

/** Bits of Go's os.FileMode: permissions in the lower bits, file type in the upper ones. */
export function goMode(stats: Stats): number {
  let mode = stats.mode & 0o777
  if (stats.isDirectory()) mode += 2 ** 31
  if (stats.isSymbolicLink()) mode += 2 ** 27
  if (stats.isBlockDevice() || stats.isCharacterDevice()) mode += 2 ** 26
  if (stats.isFIFO()) mode += 2 ** 25
  if (stats.isSocket()) mode += 2 ** 24
  if (stats.mode & 0o4000) mode += 2 ** 23
  if (stats.mode & 0o2000) mode += 2 ** 22
  if (stats.isCharacterDevice()) mode += 2 ** 21
  if (stats.mode & 0o1000) mode += 2 ** 20
  return mode
}

function extended(xattr: Kernel['xattr'], path: string) {
  try {
    return xattr.listXattrs(path).map((name) => ({ name, data: xattr.getXattr(path, name) ?? new Uint8Array() }))
  } catch {
    return [] // no extended attributes on this file system, or the entry was removed
  }
}

/** Which sizes to send. */
interface Shown {
  /** Depth to report, including the start; 0 is unlimited. */
  readonly levels: number
  /** Include files. */
  readonly all: boolean
  /** Only entries of at least this size or, if negative, at most. */
  readonly threshold: number
}

interface Node {
  path: string
  relative: string
  depth: number
  size: number
  directory: boolean
  error: string
}

/** Sizes from the leaves to the root, like du(1). A file with several hard links counts once. */
async function* usage(files: Kernel['files'], root: string, { levels, all, threshold }: Shown) {
  const open: Node[] = []
  const counted = new Set<string>()
  const shown = ({ depth: at, size, directory, error }: Node) =>
    error !== '' ||
    ((levels <= 0 || at < levels) && (directory || all) && (threshold === 0 || (threshold > 0 ? size >= threshold : size <= -threshold)))
  const reply = ({ path, relative, size, error }: Node) => ({ name: path, relativeName: relative || nameOf(root, rootStats), size, error })
  /** Ends the open folders from a depth on; each adds to the one it is in. */
  const closed = function* (depth: number) {
    for (let done = open.at(-1); done && done.depth >= depth; done = open.at(-1)) {
      open.pop()
      const outer = open.at(-1)
      if (outer) outer.size += done.size
      if (shown(done)) yield reply(done)
    }
  }
  let rootStats: Stats | undefined
  for await (const { path, relative, depth: at, stats, error } of files.walk(root)) {
    yield* closed(at)
    if (relative === '') rootStats = stats
    const key = stats ? `${stats.dev}:${stats.ino}` : ''
    const again = stats !== undefined && stats.nlink > 1 && !stats.isDirectory() && counted.has(key)
    if (stats && stats.nlink > 1 && !stats.isDirectory()) counted.add(key)
    open.push({
      path,
      relative,
      depth: at,
      // /proc/kcore reports the size of the whole address space.
      size: again || path === '/proc/kcore' ? 0 : (stats?.size ?? 0),
      directory: stats?.isDirectory() ?? false,
      error: error?.message ?? '',
    })
  }
  yield* closed(0)
}
