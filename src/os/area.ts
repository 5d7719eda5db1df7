import type { Clock } from '../cosi/clock.ts'
import type { Controller } from '../cosi/controller.ts'
import type { Logger } from '../cosi/log.ts'
import type { AnyResourceType } from '../cosi/resource.ts'
import type { Runtime } from '../cosi/runtime.ts'
import type { Store } from '../cosi/store.ts'
import type { Method } from '../rpc/server/method.ts'
import type { ServiceDefinition } from '../supervise/definition.ts'
import type { Spawn } from '../supervise/spawn.ts'
import type { Supervisor } from '../supervise/supervisor.ts'
import type { Meta } from './block/meta/meta.ts'
import type { Kernel } from './kernel.ts'
import type { Sequencer } from './lifecycle/sequencer.ts'
import type { Events } from './runtime/events.ts'
import type { LastProblem } from './runtime/last-problem.ts'
import type { Calls } from './telemetry/calls.ts'

/** One subject of the operating system: what it knows, does, runs and answers. */
export interface Area {
  readonly name: string
  readonly resources: readonly AnyResourceType[]
  controllers?(machine: Machine): Controller[]
  services?(machine: Machine): ServiceDefinition[]
  methods?(machine: Machine): Method[]
}

/** How the machine ends or begins anew. */
export type StopReason = 'reboot' | 'shutdown'

/** What init hands to every area. */
export interface Machine {
  readonly kernel: Kernel
  readonly store: Store
  readonly runtime: Runtime
  readonly log: Logger
  /** The machine's time: what is decided by a duration never asks the wall clock. */
  readonly clock: Clock
  readonly supervisor: Supervisor
  /** The lowest OOM score this machine may give to a process; -1000 where nothing holds it back. */
  readonly oomFloor: number
  /** Starts a program of the image; the reaper knows such children for init's own. */
  readonly spawn: Spawn
  /** What went wrong last, for the console. */
  readonly problem: LastProblem
  readonly events: Events
  readonly sequencer: Sequencer
  /** What is kept beside the configuration, on the META partition once there is one. */
  readonly meta: Meta
  /** What is kept of the calls of the machine API. */
  readonly calls: Calls
  /** The service with this id, as its area describes it. */
  service(id: string): ServiceDefinition
  /** Name and tag of this build. */
  readonly version: { readonly name: string; readonly tag: string; readonly sha: string; readonly built: string; readonly arch: string }
  /** Ends this process, and the machine where it is one; called when nothing is left to be done. */
  end(reason: StopReason): void
}
