import { check, libc } from '../libc.ts'

const c = libc({
  setresuid: { args: ['u32', 'u32', 'u32'], returns: 'i32' },
  setresgid: { args: ['u32', 'u32', 'u32'], returns: 'i32' },
  setgroups: { args: ['u64', 'ptr'], returns: 'i32' },
})

/** Sets real, effective and saved user id (setresuid(2), all threads). */
export function setuid(uid: number): void {
  check('setresuid', c().setresuid(uid, uid, uid), String(uid))
}

/** Sets real, effective and saved group id (setresgid(2), all threads). */
export function setgid(gid: number): void {
  check('setresgid', c().setresgid(gid, gid, gid), String(gid))
}

/** setgroups(2). */
export function setgroups(groups: readonly number[]): void {
  check('setgroups', c().setgroups(groups.length, groups.length ? Uint32Array.from(groups) : null), groups.join(','))
}
