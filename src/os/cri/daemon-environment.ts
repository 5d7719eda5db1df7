import { limitsOfGroup } from './groups.ts'

/** Environment of one of the system's daemons: its JavaScript engine gets four fifths of the group's memory as its limit, so that it collects in time. */
export function daemonEnvironment(cgroup: string | undefined): string[] {
  const { memoryMax } = cgroup ? limitsOfGroup(cgroup) : {}
  return memoryMax ? [`BUN_JSC_forceRAMSize=${Math.floor((memoryMax * 4) / 5)}`] : []
}
