import { closeSync, openSync } from 'node:fs'
import { check, libc, quoted } from '../libc.ts'
import { translated } from '../system-error.ts'

const c = libc({
  unshare: { args: ['i32'], returns: 'i32' },
  setns: { args: ['i32', 'i32'], returns: 'i32' },
})

const cloneFlags = {
  time: 0x80,
  fs: 0x200,
  mnt: 0x20000,
  cgroup: 0x2000000,
  uts: 0x4000000,
  ipc: 0x8000000,
  user: 0x10000000,
  pid: 0x20000000,
  net: 0x40000000,
} as const

/** A kind of namespace, named as in /proc/[pid]/ns. */
export type NamespaceKind = Exclude<keyof typeof cloneFlags, 'fs'>

/** unshare(2) for the calling thread; `fs` gives it its own root, working directory and umask. */
export function unshare(kinds: readonly (keyof typeof cloneFlags)[]): void {
  const bits = kinds.reduce((sum, kind) => sum | cloneFlags[kind], 0)
  check('unshare', c().unshare(bits), kinds.join(','))
}

/** setns(2) for the calling thread, by open file. */
export function setns(fd: number, kind: NamespaceKind): void {
  check('setns', c().setns(fd, cloneFlags[kind]), kind)
}

/** setns(2) for the calling thread, by path. */
export function enter(path: string, kind: NamespaceKind): void {
  const fd = translated('open', path, () => openSync(path, 'r'))
  try {
    check('setns', c().setns(fd, cloneFlags[kind]), quoted(path))
  } finally {
    closeSync(fd)
  }
}
