/** The methods of the machine API as init serves them, without a machine behind them. */
import { systemClock } from '../../src/cosi/clock.ts'
import { silent } from '../../src/cosi/log.ts'
import { Runtime } from '../../src/cosi/runtime.ts'
import { Store } from '../../src/cosi/store.ts'
import type { Machine } from '../../src/os/area.ts'
import { Meta } from '../../src/os/block/meta/meta.ts'
import type { Kernel, Mode } from '../../src/os/kernel.ts'
import { Sequencer } from '../../src/os/lifecycle/sequencer.ts'
import { AuditLog } from '../../src/os/runtime/audit/audit-log.ts'
import { Calls } from '../../src/os/runtime/calls.ts'
import { Events } from '../../src/os/runtime/events.ts'
import { LastProblem } from '../../src/os/runtime/last-problem.ts'
import { areas } from '../../src/programs/init/areas.ts'
import type { Method } from '../../src/rpc/server/method.ts'
import { roleAccess } from '../../src/rpc/server/resource-access.ts'
import { stateMethods } from '../../src/rpc/server/state.ts'
import { Supervisor } from '../../src/supervise/supervisor.ts'

/** What init serves in a mode. Nothing of the kernel is opened by listing the methods. */
export function servedMethods(mode: Mode): Method[] {
  const store = new Store()
  const events = new Events()
  const machine: Machine = {
    kernel: { mode } as Kernel,
    store,
    runtime: new Runtime(store, { log: silent }),
    log: silent,
    clock: systemClock,
    supervisor: new Supervisor({ store }),
    oomFloor: -1000,
    problem: new LastProblem(),
    events,
    sequencer: new Sequencer(events, silent),
    meta: new Meta({ kernel: { mode } as Kernel, store, log: silent }),
    calls: new Calls(new AuditLog({ write() {} })),
    version: { name: 'Ichor', tag: 'v1.13.0', sha: '', built: '', arch: 'amd64' },
    spawn() {
      throw new Error('nothing is started here')
    },
    service() {
      throw new Error('nothing is started here')
    },
    end() {},
  }
  return [...areas.flatMap((area) => area.methods?.(machine) ?? []), ...stateMethods(roleAccess)]
}
