import type { Stats } from 'node:fs'
import { machine as enums } from '../../../rpc/enums.ts'
import { type Method, type Role, serverStream } from '../../../rpc/server/method.ts'
import type { Kernel } from '../../kernel.ts'
import { absolute, translated } from '../path.ts'

const readers: readonly Role[] = ['os:admin', 'os:operator', 'os:reader']
const { Type } = enums.ListRequest

/** What is in folders, and how much room it takes. */
export function listMethods({ files, xattr }: Pick<Kernel, 'files' | 'xattr'>): Method[] {
  return [
    serverStream('machine.MachineService/List', readers, async function* ({ root, recurse, recursionDepth, types, reportXattrs }) {
      const start = absolute(root || '/')
      translated('list', start, () => files.lstat(start))
      const depth = recurse ? recursionDepth || Number.POSITIVE_INFINITY : 1
      for await (const { path, relative, stats, error } of files.walk(start, { depth })) {
        if (stats && types.length > 0 && !types.some((type) => isOf(stats, type))) continue
        yield {
          name: path,
          relativeName: relative || '.',
          ...(stats
            ? {
                size: stats.size,
                mode: goMode(stats),
                modified: Math.floor(stats.mtimeMs / 1000),
                isDir: stats.isDirectory(),
                uid: stats.uid,
                gid: stats.gid,
                link: stats.isSymbolicLink() ? files.readlink(path) : '',
              }
            : {}),
          error: error?.message ?? '',
          xattrs: reportXattrs && stats ? extended(xattr, path) : [],
        }
      }
    }),
    serverStream('machine.MachineService/DiskUsage', readers, async function* ({ paths, recursionDepth, all, threshold }) {
      for (const root of paths.length > 0 ? paths : ['/']) yield* usage(files, absolute(root), recursionDepth || 1, all, threshold)
    }),
  ]
}

function isOf(stats: Stats, type: number): boolean {
  if (type === Type.DIRECTORY) return stats.isDirectory()
  if (type === Type.SYMLINK) return stats.isSymbolicLink()
  return stats.isFile()
}

/** Go's os.FileMode bits: the permissions below, what the entry is above. */
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
    return [] // file systems without extended attributes, entries that are gone
  }
}

interface Node {
  path: string
  relative: string
  depth: number
  size: number
  directory: boolean
  error: string
}

/** Sizes from the leaves to the root, as du(1) tells them; a file with several names counts once. */
async function* usage(files: Kernel['files'], root: string, depth: number, all: boolean, threshold: number) {
  translated('measure', root, () => files.lstat(root))
  const open: Node[] = []
  const counted = new Set<string>()
  const shown = ({ relative, depth: at, size, directory }: Node) =>
    relative === '' || (at <= depth && (directory || all) && (threshold >= 0 ? size >= threshold : size <= -threshold))
  const told = ({ path, relative, size, error }: Node) => ({ name: path, relativeName: relative || '.', size, error })
  for await (const { path, relative, depth: at, stats, error } of files.walk(root)) {
    while (open.length > 0 && open.at(-1)!.depth >= at) {
      const done = open.pop()!
      if (open.length > 0) open.at(-1)!.size += done.size
      if (shown(done)) yield told(done)
    }
    const key = stats ? `${stats.dev}:${stats.ino}` : ''
    const again = stats !== undefined && stats.nlink > 1 && !stats.isDirectory() && counted.has(key)
    if (stats && stats.nlink > 1 && !stats.isDirectory()) counted.add(key)
    open.push({
      path,
      relative,
      depth: at,
      size: again ? 0 : (stats?.size ?? 0),
      directory: stats?.isDirectory() ?? false,
      error: error?.message ?? '',
    })
  }
  while (open.length > 0) {
    const done = open.pop()!
    if (open.length > 0) open.at(-1)!.size += done.size
    if (shown(done)) yield told(done)
  }
}
