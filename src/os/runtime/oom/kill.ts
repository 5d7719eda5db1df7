/** Kills the processes of a control group and has the kernel free their memory at once. */
import { failedWith } from '../../../wire/errno.ts'
import { parseCommandLine } from '../../../wire/proc/process.ts'
import type { Kernel } from '../../kernel.ts'

/** What kills a group. */
export interface KillCalls {
  readonly files: Pick<Kernel['files'], 'readTextIfThere'>
  readonly cgroup: Pick<Kernel['cgroup'], 'processesIn' | 'killCgroup'>
  readonly process: Pick<Kernel['process'], 'openProcess'>
}

/** Processes of a group that are reported and released, and characters of each command line. */
const mostProcesses = 256
const longestLine = 512

/** Kills a group; returns the command lines of its processes. */
export function killGroup({ files, cgroup, process }: KillCalls, path: string): string[] {
  // A kernel thread or a process of another pid namespace shows as 0.
  const pids = cgroup.processesIn(path).filter((pid) => pid > 0)
  const known = pids.slice(0, mostProcesses)
  const lines = known.map((pid) => commandLine(files, pid))
  // Opened before: afterwards the number may be another process's.
  const open = known.flatMap((pid) => process.openProcess(pid) ?? [])
  try {
    cgroup.killCgroup(path)
    for (const each of open) each.releaseMemory()
  } finally {
    for (const each of open) each.close()
  }
  return lines.filter((line) => line !== '')
}

function commandLine(files: KillCalls['files'], pid: number): string {
  try {
    return parseCommandLine(files.readTextIfThere(`/proc/${pid}/cmdline`) ?? '')
      .join(' ')
      .slice(0, longestLine)
  } catch (error) {
    if (failedWith(error, 'ESRCH')) return ''
    throw error
  }
}
