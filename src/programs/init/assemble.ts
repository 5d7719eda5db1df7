/** Hands the kernel to every area. */
import { type Clock, systemClock } from '../../cosi/clock.ts'
import type { Logger } from '../../cosi/log.ts'
import { describe } from '../../cosi/meta.ts'
import { Runtime } from '../../cosi/runtime.ts'
import { Store } from '../../cosi/store.ts'
import type { Machine, StopReason } from '../../os/area.ts'
import { Meta } from '../../os/block/meta/meta.ts'
import { ConfigApply } from '../../os/config/apply/config-apply.ts'
import { OwnImages } from '../../os/cri/image-table.ts'
import { podNetworks } from '../../os/cri/pod-networks.ts'
import { operatorEnvironment } from '../../os/cri/service-environment.ts'
import { electIn } from '../../os/etcd/elections.ts'
import { Logind } from '../../os/k8s/logind/logind.ts'
import type { Kernel } from '../../os/kernel.ts'
import { PhaseLog } from '../../os/lifecycle/phase-log.ts'
import { Sequencer } from '../../os/lifecycle/sequencer.ts'
import { SystemChanges } from '../../os/lifecycle/system-changes.ts'
import { namespaces } from '../../os/namespaces.ts'
import { guestinfoReader } from '../../os/network/guestinfo.ts'
import { clouds } from '../../os/network/platform/clouds.ts'
import { Outbound } from '../../os/outbound.ts'
import { ApidPlace } from '../../os/runtime/apid-place.ts'
import { Events } from '../../os/runtime/events.ts'
import { LastProblem } from '../../os/runtime/last-problem.ts'
import { LogFiles } from '../../os/runtime/log-files.ts'
import { isVerbose } from '../../os/runtime/verbosity.ts'
import { trustedRoots } from '../../os/secrets/trusted-roots.ts'
import { auditFile } from '../../os/telemetry/audit/audit-file.ts'
import { AuditLog } from '../../os/telemetry/audit/audit-log.ts'
import { Calls } from '../../os/telemetry/calls.ts'
import { Deliveries } from '../../os/telemetry/shipping/deliveries.ts'
import { release } from '../../release.ts'
import { publicAuthorities } from '../../rpc/client/public-authorities.ts'
import type { Method } from '../../rpc/server/method.ts'
import type { LogRing } from '../../supervise/log-ring.ts'
import { Logs } from '../../supervise/logs.ts'
import type { Spawn } from '../../supervise/spawn.ts'
import { Supervisor } from '../../supervise/supervisor.ts'
import { areas } from './areas.ts'
import { configHooks } from './config-hooks.ts'
import { controllersLogger } from './console.ts'

/** What a machine needs besides the areas. */
export interface Dependencies {
  readonly kernel: Kernel
  readonly spawn: Spawn
  readonly clock?: Clock
  /** Milliseconds from a controller's first failure to its next try. */
  readonly firstPause?: number
  /** The lowest OOM score that may be given. */
  readonly oomFloor: number
  /** A logger for everything that is logged, which shows what matters on the console. */
  logger(ring: LogRing, problem: LastProblem, verbose: () => boolean): Logger
  end(reason: StopReason): void
}

/** A machine with all that the areas add to it. */
export interface Assembled extends Machine {
  /** The methods of all areas. */
  readonly methods: readonly Method[]
}

/** The machine with every area's controllers registered; nothing runs yet. */
export function assemble({ kernel, spawn, clock = systemClock, firstPause, oomFloor, logger, end }: Dependencies): Assembled {
  const store = new Store({ subscriberFailed: (error) => log.error('resource subscriber failed', { error }) })
  const logs = new Logs()
  const problem = new LastProblem(clock)
  const log = logger(logs.open('machined'), problem, () => isVerbose(store))
  const supervisor = new Supervisor({ store, clock, logs, log, oomFloor })
  supervisor.subscribe(({ id, state, message }) => log.info('service', { service: id, state, message }))
  const runtime = new Runtime(store, { clock, firstPause, log: controllersLogger(logs.open('controller-runtime'), log) })
  const events = new Events()
  const services = new Map<string, ReturnType<Machine['service']>>()
  const methods: Method[] = []
  const machine: Assembled = {
    methods,
    kernel,
    store,
    runtime,
    log,
    clock,
    supervisor,
    oomFloor,
    apidPlace: new ApidPlace(supervisor, log),
    problem,
    spawn,
    events,
    logFiles: new LogFiles({ files: kernel.files, log, logs: () => logs.entries() }),
    sequencer: new Sequencer(events, log, phaseLog(kernel)),
    systemChanges: new SystemChanges(),
    meta: new Meta({ kernel, store, log }),
    deliveries: new Deliveries(clock, log),
    calls: new Calls(auditLog(kernel, supervisor, log)),
    config: new ConfigApply(
      { store, runtime, log, kernel },
      configHooks(() => machine),
    ),
    clouds: clouds({ ...kernel, guestinfo: guestinfoReader({ spawn, files: kernel.files }), store }),
    outbound: new Outbound({
      publicRoots: publicAuthorities,
      addedRoots: () => trustedRoots(store),
      variables: () => operatorEnvironment(store),
    }),
    elect: electIn(store),
    logind: new Logind(kernel, log, clock),
    images: new OwnImages(kernel),
    podNetworks,
    serviceIds: () => [...services.keys()],
    service(id) {
      const definition = services.get(id)
      if (!definition) throw new Error(`service "${id}" is not registered`)
      return definition
    },
    version: release,
    end,
  }
  describe(
    store,
    areas.flatMap(({ resources }) => resources),
    namespaces,
  )
  for (const area of areas) {
    const parts = area.parts?.(machine) ?? {}
    runtime.register(...(parts.controllers ?? []))
    for (const definition of parts.services ?? []) services.set(definition.id, definition)
    methods.push(...(parts.methods ?? []))
  }
  return machine
}

/** Phases with their times: since power-on, or since this container started. */
function phaseLog({ mode, time }: Kernel): PhaseLog {
  if (mode === 'container') return new PhaseLog()
  const phases = new PhaseLog(() => Number(time.clock('boottime') / 1000n) / 1000)
  // The time before init: firmware and boot loader are not measured by this clock, the kernel's starts with the kernel.
  phases.before('start', 'kernel', ['kernel', 'stage0', 'runtime'])
  return phases
}

/** The audit log: in memory for `logs`, and on the disk once there is one. */
function auditLog(kernel: Kernel, { logs }: Supervisor, log: Machine['log']): AuditLog {
  const rings = { changes: logs.open('audit'), reads: logs.open('audit-reads') }
  const file = auditFile(kernel, (error) => log.warn('audit log is kept in memory only', { error }))
  return new AuditLog({
    write(lines, kind) {
      rings[kind].write(lines)
      file(lines, kind)
    },
  })
}
