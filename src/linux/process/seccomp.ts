import { filterProgram } from '../filter-program.ts'
import { check, libc } from '../libc.ts'

const c = libc({ prctl: { args: ['i32', 'u64', 'ptr', 'u64', 'u64'], returns: 'i32' } })

const PR_SET_SECCOMP = 22
const SECCOMP_MODE_FILTER = 2

/**
 * Installs a permanent system call filter for this thread and its descendants (prctl PR_SET_SECCOMP). Needs no_new_privs or
 * CAP_SYS_ADMIN. Other threads are not affected: it is meant for a process about to execve, which ends them.
 */
export function filterSystemCalls(instructions: readonly (readonly number[])[]): void {
  check('prctl', c().prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filterProgram(instructions), 0, 0), 'PR_SET_SECCOMP')
}
