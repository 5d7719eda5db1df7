import { filterProgram } from '../filter-program.ts'
import { check, libc } from '../libc.ts'

const c = libc({ prctl: { args: ['i32', 'u64', 'ptr', 'u64', 'u64'], returns: 'i32' } })

const PR_SET_SECCOMP = 22
const SECCOMP_MODE_FILTER = 2

/**
 * Puts this thread, and what it becomes or starts, behind a filter of system calls for good (prctl PR_SET_SECCOMP). Needs
 * no_new_privs or CAP_SYS_ADMIN. Other threads are left as they are: it is for a process that is about to execve, which ends them.
 */
export function filterSystemCalls(instructions: readonly (readonly number[])[]): void {
  check('prctl', c().prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filterProgram(instructions), 0, 0), 'PR_SET_SECCOMP')
}
