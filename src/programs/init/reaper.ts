import { reapOrphans } from '../../linux/process/process.ts'
import { ownChildren } from '../../supervise/spawn.ts'

/** Orphans whose signal came together with another's are found by this tick, in milliseconds. */
const interval = 2_000

/** Takes ended orphans off the process table, which only PID 1 can; children that the runtime waits for are left to it. */
export function keepReaping(): void {
  const reap = () => {
    reapOrphans((pid) => ownChildren.has(pid))
  }
  process.on('SIGCHLD', reap)
  setInterval(reap, interval).unref()
}
