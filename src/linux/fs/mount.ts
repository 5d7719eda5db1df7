import { readFileSync } from 'node:fs'
import type { MountEntry } from '../../wire/proc/mountinfo.ts'
import { parseMountinfo } from '../../wire/proc/mountinfo.ts'
import { systemCallNumber } from '../../wire/seccomp/system-calls.ts'
import { check, cString, libc, quoted } from '../libc.ts'
import { translated } from '../system-error.ts'

const c = libc({
  mount: { args: ['ptr', 'ptr', 'ptr', 'u64', 'ptr'], returns: 'i32' },
  umount2: { args: ['ptr', 'i32'], returns: 'i32' },
  chroot: { args: ['ptr'], returns: 'i32' },
  syscall: { args: ['i64', 'i32', 'ptr', 'u32', 'ptr', 'u64'], returns: 'i64' },
})

/** Flags of mount(2), by the names fstab and /proc/mounts use. */
export const mountFlags = {
  ro: 1,
  nosuid: 1 << 1,
  nodev: 1 << 2,
  noexec: 1 << 3,
  sync: 1 << 4,
  remount: 1 << 5,
  mand: 1 << 6,
  dirsync: 1 << 7,
  nosymfollow: 1 << 8,
  noatime: 1 << 10,
  nodiratime: 1 << 11,
  bind: 1 << 12,
  move: 1 << 13,
  rec: 1 << 14,
  silent: 1 << 15,
  unbindable: 1 << 17,
  private: 1 << 18,
  slave: 1 << 19,
  shared: 1 << 20,
  relatime: 1 << 21,
  strictatime: 1 << 24,
  lazytime: 1 << 25,
} as const

/** One flag of mount(2). */
export type MountFlag = keyof typeof mountFlags

/** How mount events propagate between a mount and its peers; the r forms are recursive. */
export type Propagation = 'shared' | 'private' | 'slave' | 'unbindable' | 'rshared' | 'rprivate' | 'rslave' | 'runbindable'

/** The arguments of mount(2). */
export interface MountRequest {
  source: string
  target: string
  type?: string
  flags?: readonly MountFlag[]
  data?: string | undefined
}

/** mount(2). */
export function mount({ source, target, type = '', flags = [], data = '' }: MountRequest): void {
  const bits = flags.reduce((sum, flag) => sum | mountFlags[flag], 0)
  const subject = `${quoted(source)} on ${quoted(target)}`
  check('mount', c().mount(cString(source), cString(target), type ? cString(type) : null, bits, data ? cString(data) : null), subject)
}

/** umount2(2); `detach` removes it from the tree at once and frees it when its last user closes it. */
export function umount(target: string, { detach = false, force = false, noFollow = true } = {}): void {
  const bits = (force ? 1 : 0) | (detach ? 2 : 0) | (noFollow ? 8 : 0)
  check('umount', c().umount2(cString(target), bits), quoted(target))
}

/** Bind-mounts a file or tree at a second place, optionally read-only or with other flags. */
export function bind(source: string, target: string, { recursive = false, flags = [] as readonly MountFlag[] } = {}): void {
  mount({ source, target, flags: recursive ? ['bind', 'rec'] : ['bind'] })
  if (flags.length === 0) return
  try {
    mount({ source: 'none', target, flags: ['bind', 'remount', ...flags] })
  } catch (error) {
    umount(target, { detach: true })
    throw error
  }
}

/** Sets the propagation of a mount point. */
export function propagate(target: string, how: Propagation): void {
  const recursive = how.startsWith('r')
  const flag = (recursive ? how.slice(1) : how) as MountFlag
  mount({ source: 'none', target, flags: recursive ? [flag, 'rec'] : [flag] })
}

/** Changes flags or data of a mounted file system. */
export function remount(target: string, flags: readonly MountFlag[], data = ''): void {
  mount({ source: 'none', target, flags: ['remount', ...flags], data })
}

const AT_FDCWD = -100
const AT_RECURSIVE = 0x8000
const MOUNT_ATTR_RDONLY = 1

/** Makes every mount at and below a path read-only, in this mount namespace only (mount_setattr(2)). */
export function readOnlyBelow(path: string): void {
  const attributes = new BigUint64Array([BigInt(MOUNT_ATTR_RDONLY), 0n, 0n, 0n]) // struct mount_attr
  const number = systemCallNumber('mount_setattr')
  const result = c().syscall(number, AT_FDCWD, cString(path), AT_RECURSIVE, attributes, attributes.byteLength)
  check('mount_setattr', result, `${quoted(path)} read-only`)
}

/** chroot(2). */
export function chroot(path: string): void {
  check('chroot', c().chroot(cString(path)), quoted(path))
}

/** The mounts in the mount namespace of a process, in mount order. */
export function mounts(pid: number | 'self' = 'self'): MountEntry[] {
  const path = `/proc/${pid}/mountinfo`
  return parseMountinfo(translated('read', path, () => readFileSync(path, 'utf8')))
}

/** The topmost mount at exactly this path, if any. */
export function mountAt(path: string, entries: readonly MountEntry[] = mounts()): MountEntry | undefined {
  return entries.findLast((entry) => entry.target === path)
}

/** Unmounts everything at and below a path, innermost first; returns what was unmounted. */
export function umountTree(path: string, { detach = true } = {}): string[] {
  const inside = mounts().filter(({ target }) => target === path || target.startsWith(path === '/' ? '/' : `${path}/`))
  return inside.reverse().map(({ target }) => {
    umount(target, { detach })
    return target
  })
}
