import { type MountEntry, parseMountinfo } from '../../../wire/proc/mountinfo.ts'
import type { Kernel } from '../../kernel.ts'
import type { Metric, Sample } from './exposition.ts'

/** File systems of this machine: the size of one in a network is not read, as a server that is gone would block the reader. */
const local = /^(ext[234]|xfs|btrfs|f2fs|vfat|tmpfs|squashfs|erofs|overlay)$/
/** Mounts of containers, of which there are as many as there are containers. */
const ofContainers = /^\/(dev|proc|sys|run\/(containerd|netns)|var\/lib\/(containerd|kubelet))(\/|$)/
/** Parts of the system that are of interest although a container node has several of them on one disk. */
const wellKnown = new Set(['/', '/var', '/system/state', '/run', '/tmp'])
/** The most file systems that are reported. */
const most = 128

/** Sizes of file systems: one mount of each, the shortest path, and those of the well-known paths. */
export function fileSystemMetrics(files: Pick<Kernel['files'], 'readText' | 'statfs'>): Metric[] {
  const all = reported(parseMountinfo(files.readText('/proc/self/mountinfo'))).flatMap((mount) => {
    const usage = sizeOf(files, mount.target)
    return usage ? [{ ...mount, usage }] : []
  })
  type Each = (typeof all)[number]
  const each = (name: string, help: string, value: (one: Each) => number): Metric => ({
    name: `node_filesystem_${name}`,
    help,
    type: 'gauge',
    samples: all.map((one): Sample => [{ device: one.source, fstype: one.type, mountpoint: one.target }, value(one)]),
  })
  return [
    each('size_bytes', 'How much a file system may hold.', ({ usage }) => usage.size),
    each('free_bytes', 'How much more a file system may hold, its reserve included.', ({ usage }) => usage.free),
    each('avail_bytes', 'How much more a file system may hold.', ({ usage }) => usage.available),
    each('files', 'How many files a file system may hold; 0 is no limit.', ({ usage }) => usage.files),
    each('files_free', 'How many more files a file system may hold.', ({ usage }) => usage.filesFree),
    each('readonly', 'Whether a file system is read-only.', ({ superOptions }) => (superOptions.includes('ro') ? 1 : 0)),
  ]
}

function reported(mounts: readonly MountEntry[]): MountEntry[] {
  // What is mounted over another hides it.
  const visible = new Map(mounts.map((mount) => [mount.target, mount]))
  const candidates = [...visible.values()].filter(({ type, target }) => local.test(type) && !ofContainers.test(target))
  const known = candidates.filter(({ target }) => wellKnown.has(target))
  const devices = new Set(known.map(({ device }) => device))
  const others = candidates
    .filter(({ target }) => !wellKnown.has(target))
    .sort((a, b) => a.target.length - b.target.length || (a.target < b.target ? -1 : 1))
    .filter(({ device }) => !devices.has(device) && devices.add(device))
  return [...known, ...others].slice(0, most)
}

/** One that was unmounted meanwhile has none. */
function sizeOf(files: Pick<Kernel['files'], 'statfs'>, path: string) {
  try {
    return files.statfs(path)
  } catch {
    return undefined
  }
}
