/** A machine that the areas are listed from: their controllers, services and methods, of which nothing is started. */
import { systemClock } from '../../src/cosi/clock.ts'
import { silent } from '../../src/cosi/log.ts'
import { Runtime } from '../../src/cosi/runtime.ts'
import { Store } from '../../src/cosi/store.ts'
import type { Machine } from '../../src/os/area.ts'
import { Meta } from '../../src/os/block/meta/meta.ts'
import { ConfigApply } from '../../src/os/config/apply/config-apply.ts'
import { OwnImages } from '../../src/os/cri/image-table.ts'
import { Logind } from '../../src/os/k8s/logind/logind.ts'
import type { Kernel, Mode } from '../../src/os/kernel.ts'
import { Sequencer } from '../../src/os/lifecycle/sequencer.ts'
import { SystemChanges } from '../../src/os/lifecycle/system-changes.ts'
import { Outbound } from '../../src/os/outbound.ts'
import { ApidPlace } from '../../src/os/runtime/apid-place.ts'
import { Events } from '../../src/os/runtime/events.ts'
import { LastProblem } from '../../src/os/runtime/last-problem.ts'
import { LogFiles } from '../../src/os/runtime/log-files.ts'
import { AuditLog } from '../../src/os/telemetry/audit/audit-log.ts'
import { Calls } from '../../src/os/telemetry/calls.ts'
import { Deliveries } from '../../src/os/telemetry/shipping/deliveries.ts'
import { Supervisor } from '../../src/supervise/supervisor.ts'

/** A machine in a mode; of the kernel there is only what is read while the areas list their parts. */
export function unstartedMachine(mode: Mode): Machine {
  const kernel = {
    mode,
    files: { readText: () => '', readTextIfThere: () => undefined, exists: () => false },
    uts: { gethostname: () => '' },
  } as unknown as Kernel
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const events = new Events()
  const supervisor = new Supervisor({ store })
  return {
    kernel,
    store,
    runtime,
    log: silent,
    clock: systemClock,
    supervisor,
    oomFloor: -1000,
    apidPlace: new ApidPlace(supervisor, silent),
    problem: new LastProblem(),
    events,
    logFiles: new LogFiles({ files: kernel.files, log: silent, logs: () => [] }),
    sequencer: new Sequencer(events, silent),
    systemChanges: new SystemChanges(),
    meta: new Meta({ kernel, store, log: silent }),
    deliveries: new Deliveries(systemClock, silent),
    calls: new Calls(new AuditLog({ write() {} })),
    config: new ConfigApply({ store, runtime, log: silent, kernel }),
    clouds: { names: [], userData: async () => undefined },
    outbound: new Outbound({ publicRoots: '', addedRoots: () => '', variables: () => [] }),
    elect: async () => {},
    logind: new Logind(kernel, silent, systemClock),
    images: new OwnImages(kernel),
    podNetworks: async () => [],
    version: { name: 'Ichor', tag: 'v1.13.0', sha: '', built: '', arch: 'amd64' },
    spawn() {
      throw new Error('nothing is started here')
    },
    serviceIds: () => [],
    service() {
      throw new Error('nothing is started here')
    },
    end() {},
  }
}
