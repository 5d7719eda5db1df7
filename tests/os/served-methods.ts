/** The methods of the machine API as init serves them, without a machine behind them. */
import type { Mode } from '../../src/os/kernel.ts'
import { areas } from '../../src/programs/init/areas.ts'
import type { Method } from '../../src/rpc/server/method.ts'
import { roleAccess } from '../../src/rpc/server/resource-access.ts'
import { stateMethods } from '../../src/rpc/server/state.ts'
import { unstartedMachine } from './unstarted-machine.ts'

/** What init serves in a mode. Nothing of the kernel is opened by listing the methods. */
export function servedMethods(mode: Mode): Method[] {
  const machine = unstartedMachine(mode)
  return [...areas.flatMap((area) => area.parts?.(machine).methods ?? []), ...stateMethods(roleAccess)]
}
