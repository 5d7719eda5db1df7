import { closeSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { failedWith } from '../../wire/errno.ts'
import { systemCallNumber } from '../../wire/seccomp/system-calls.ts'
import { check, cString, cStrings, libc, quoted } from '../libc.ts'
import { SystemError, translated } from '../system-error.ts'

const c = libc({
  waitid: { args: ['i32', 'i32', 'ptr', 'i32'], returns: 'i32' },
  kill: { args: ['i32', 'i32'], returns: 'i32' },
  prctl: { args: ['i32', 'u64', 'u64', 'u64', 'u64'], returns: 'i32' },
  setsid: { args: [], returns: 'i32' },
  getpid: { args: [], returns: 'i32' },
  getppid: { args: [], returns: 'i32' },
  execve: { args: ['ptr', 'ptr', 'ptr'], returns: 'i32' },
  umask: { args: ['u32'], returns: 'u32' },
  signal: { args: ['i32', 'ptr'], returns: 'ptr' },
  sigprocmask: { args: ['i32', 'ptr', 'ptr'], returns: 'i32' },
  setpriority: { args: ['i32', 'u32', 'i32'], returns: 'i32' },
  close_range: { args: ['u32', 'u32', 'i32'], returns: 'i32' },
  syscall: { args: ['i64', 'i32', 'u32'], returns: 'i64' },
})

/** A signal's name (`SIGTERM`) or its number; 0 only checks whether the process exists. */
export type Signal = NodeJS.Signals | number

/** The exit of a process. */
export interface Exit {
  pid: number
  /** Exit code, when it exited. */
  code?: number
  /** Signal number, when a signal killed it. */
  signal?: number
}

const WNOHANG = 1
const WEXITED = 4
const WNOWAIT = 0x1000000
const P_ALL = 0
const P_PID = 1

/** The number of a signal. */
export function signalNumber(signal: Signal): number {
  const number = typeof signal === 'number' ? signal : constants.signals[signal]
  if (number === undefined) throw new SystemError('signal', 'EINVAL', quoted(String(signal)))
  return number
}

/** kill(2). */
export function kill(pid: number, signal: Signal): void {
  check('kill', c().kill(pid, signalNumber(signal)), `${pid} ${signal}`)
}

/** Whether a process with this id exists (a zombie counts). */
export function exists(pid: number): boolean {
  try {
    kill(pid, 0)
    return true
  } catch (error) {
    return failedWith(error, 'EPERM')
  }
}

/** A process that its number alone would not identify once it has ended. */
export interface OpenProcess {
  /** Frees the memory of a process that was killed now, and not when it is scheduled to exit (process_mrelease(2)). */
  releaseMemory(): void
  close(): void
}

/** Opens a process (pidfd_open(2)); undefined when there is none. */
export function openProcess(pid: number): OpenProcess | undefined {
  try {
    const fd = check('pidfd_open', c().syscall(systemCallNumber('pidfd_open'), pid, 0), String(pid))
    return { releaseMemory: () => releaseMemory(fd, pid), close: () => closeSync(fd) }
  } catch (error) {
    if (failedWith(error, 'ESRCH')) return undefined
    throw error
  }
}

function releaseMemory(fd: number, pid: number): void {
  try {
    check('process_mrelease', c().syscall(systemCallNumber('process_mrelease'), fd, 0), String(pid))
  } catch (error) {
    // It has exited, shares its memory with one that lives, is being released already, or the kernel is older than 5.15.
    if (!failedWith(error, 'ESRCH', 'EINVAL', 'EAGAIN', 'ENOSYS')) throw error
  }
}

function wait(kind: number, id: number, options: number): Exit | undefined {
  const info = Buffer.alloc(128) // siginfo_t
  try {
    check('waitid', c().waitid(kind, id, info, options))
  } catch (error) {
    if (failedWith(error, 'ECHILD', 'EINTR')) return undefined
    throw error
  }
  const pid = info.readInt32LE(16)
  if (pid === 0) return undefined
  const status = info.readInt32LE(24)
  return info.readInt32LE(8) === 1 ? { pid, code: status } : { pid, signal: status } // CLD_EXITED
}

/** The next child that has exited, without reaping it. */
function peekExit(): Exit | undefined {
  return wait(P_ALL, 0, WEXITED | WNOHANG | WNOWAIT)
}

/** Reaps one exited child; undefined when it still runs or is not a child. */
export function reap(pid: number): Exit | undefined {
  return wait(P_PID, pid, WEXITED | WNOHANG)
}

/** Pids of the direct children of this process. */
export function children(): number[] {
  const pid = c().getpid()
  const path = `/proc/${pid}/task/${pid}/children`
  return translated('read', path, () => readFileSync(path, 'utf8'))
    .split(' ')
    .map(Number)
    .filter((child) => child > 0)
}

/** Reaps every exited child that the runtime does not wait for itself; returns what was reaped. */
export function reapOrphans(isOwn: (pid: number) => boolean): Exit[] {
  const reaped: Exit[] = []
  for (;;) {
    const next = peekExit()
    if (!next) return reaped
    // A child of the runtime may be first in the kernel's list and hide the others.
    const others = isOwn(next.pid) ? children().filter((pid) => !isOwn(pid)) : [next.pid]
    const exits = others.map(reap).filter((exit) => exit !== undefined)
    if (exits.length === 0) return reaped
    reaped.push(...exits)
  }
}

/** Prevents execve from granting privileges (prctl PR_SET_NO_NEW_PRIVS). */
export function setNoNewPrivileges(): void {
  check('prctl', c().prctl(38, 1, 0, 0, 0), 'PR_SET_NO_NEW_PRIVS')
}

/** The signal this process gets when its parent's thread ends (prctl PR_SET_PDEATHSIG). */
export function setParentDeathSignal(signal: Signal): void {
  check('prctl', c().prctl(1, signalNumber(signal), 0, 0, 0), 'PR_SET_PDEATHSIG')
}

/** setsid(2): starts a new session. */
export function setsid(): number {
  return check('setsid', c().setsid())
}

/** getpid(2). */
export function getpid(): number {
  return c().getpid()
}

/** getppid(2). */
export function getppid(): number {
  return c().getppid()
}

/** Sets the scheduling priority, -20 to 19 (setpriority(2)). */
export function setNice(value: number): void {
  check('setpriority', c().setpriority(0, 0, value), String(value))
}

/** umask(2); returns the previous mask. */
export function umask(mask: number): number {
  return c().umask(mask)
}

/** Resets signals and descriptors for a new program: nothing ignored or blocked, and everything from `firstFd` closed by execve. */
export function resetForExec(firstFd = 3): void {
  for (let signal = 1; signal <= 64; signal++) c().signal(signal, null)
  check('sigprocmask', c().sigprocmask(2, new BigUint64Array(16), null)) // SIG_SETMASK
  check('close_range', c().close_range(firstFd, 0xffffffff, 4)) // CLOSE_RANGE_CLOEXEC
}

/** execve(2): replaces this process by another program; returns only by throwing. */
export function execve(path: string, args: readonly string[], env: Readonly<Record<string, string>>): never {
  const argv = cStrings(args)
  const envp = cStrings(Object.entries(env).map(([name, value]) => `${name}=${value}`))
  check('execve', c().execve(cString(path), argv.pointers, envp.pointers), quoted(path))
  throw new SystemError('execve', 0, `${quoted(path)} with ${argv.strings.length} arguments`)
}

/** When a process started, in clock ticks since boot; undefined when it is gone. Together with the pid it identifies a process. */
export function startTime(pid: number | 'self'): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const ticks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19])
    return Number.isFinite(ticks) ? ticks : undefined
  } catch (error) {
    if (failedWith(error, 'ENOENT', 'ESRCH')) return undefined
    throw error
  }
}

/** The OOM score adjustment of a process, -1000 to 1000. */
export function oomScoreAdjustment(pid: number | 'self' = 'self'): number {
  const path = `/proc/${pid}/oom_score_adj`
  return Number(translated('read', path, () => readFileSync(path, 'utf8')).trim())
}
