import type { StoreView } from '../../supervise/definition.ts'
import { limitsOfGroup } from './groups.ts'
import { operatorEnvironment } from './service-environment.ts'

/** Variables of the JavaScript runtime: they could turn a daemon into another program, and the node would have no API. */
const reserved = /^(BUN|NODE|JSC)_/

/**
 * Environment of one of the system's daemons: the operator's variables, except those of the runtime. Its JavaScript engine gets
 * four fifths of the group's memory as its limit, so that it collects in time.
 */
export function daemonEnvironment(store: StoreView, cgroup: string | undefined): string[] {
  const { memoryMax } = cgroup ? limitsOfGroup(cgroup) : {}
  const limit = memoryMax ? [`BUN_JSC_forceRAMSize=${Math.floor((memoryMax * 4) / 5)}`] : []
  return [...operatorEnvironment(store).filter((variable) => !reserved.test(variable)), ...limit]
}
