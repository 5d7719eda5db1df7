import { limitsOfGroup } from './groups.ts'

/** Environment of a daemon of ours: its JavaScript engine is told four fifths of the group's memory, so that it collects in time. */
export function daemonEnvironment(cgroup: string | undefined): string[] {
  const { memoryMax } = cgroup ? limitsOfGroup(cgroup) : {}
  return memoryMax ? [`BUN_JSC_forceRAMSize=${Math.floor((memoryMax * 4) / 5)}`] : []
}
