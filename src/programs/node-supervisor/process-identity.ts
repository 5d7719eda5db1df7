import { readFileSync } from 'node:fs'

/** A process that cannot be mistaken for a later one with the same number. */
export interface ProcessIdentity {
  pid: number
  /** Start time in clock ticks since boot, as /proc shows it, together with the boot's id. */
  start: string
}

/** The identity of a running process, or undefined when there is none; zombies count as gone. */
export function identify(pid: number): ProcessIdentity | undefined {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined
  }
  // proc_pid_stat(5): the name in parentheses may hold anything, so fields are counted from the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (fields[0] === 'Z' || fields[0] === 'X') return undefined
  return { pid, start: `${bootId()}/${fields[19]}` }
}

/** Whether this very process still runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.start === identity.start
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim().slice(0, 8)
}
