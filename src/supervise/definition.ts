/** How a service is described to the supervisor: what it needs, what runs, how it is known to be well, and what happens when it ends. */

import type { Clock } from '../cosi/clock.ts'
import type { Store } from '../cosi/store.ts'
import type { HealthCheck } from './health.ts'
import type { LogRing } from './log-ring.ts'

/** The reading half of the store; what a condition reads is what wakes it. */
export type StoreView = Pick<Store, 'get' | 'list'>

/** What the operator may ask of a service over the API. */
export type OperatorAction = 'start' | 'stop' | 'restart'

/** When a run that ended by itself is followed by another. */
export type RestartPolicy = 'always' | 'never' | 'untilSuccess'

/** One service of the node. */
export interface ServiceDefinition {
  readonly id: string
  /** Services that must be up before this one is prepared, and that are stopped after it. */
  readonly dependsOn: readonly string[]
  /** Services that it starts without but may use later on: they are stopped after it too. */
  readonly outlivedBy?: readonly string[]
  /** Names of the conditions not yet met; asked again whenever a resource type it has read changes. */
  readonly wait?: (store: StoreView) => string[]
  /** Brings about what a run needs; called before each run, so it does nothing when all is there. Throw `Skip` when there is nothing to run. */
  readonly prepare?: (life: Life) => Promise<void>
  readonly runner: Runner
  readonly health?: HealthCheck
  readonly restart: RestartPolicy
  /** OOM score of the service's processes; -1000 to 1000. */
  readonly oom?: number
  /** Control group, from the node's root: `/system/apid`. */
  readonly cgroup?: string
  /** Milliseconds between SIGTERM and SIGKILL; 10,000 unless said. */
  readonly stopTimeout?: number
  /** What the API may do to it; nothing unless said. */
  readonly operator?: readonly OperatorAction[]
}

/** What a service's own code is handed while it lives. */
export interface Life {
  readonly definition: ServiceDefinition
  readonly store: StoreView
  readonly output: LogRing
  readonly clock: Clock
  /** The OOM score that may be set here: the definition's, or the lowest that is allowed. */
  readonly oom?: number
  /** Aborted when the service is to stop. */
  readonly signal: AbortSignal
  /** Adds an event without changing the state. */
  note(message: string): void
  /** Makes the process known by its id before it runs its first instruction: what it calls then is its service's call. */
  created(pid: number): void
}

/** How a run ended. */
export interface Exit {
  readonly ok: boolean
  /** `exited with code 1`, `killed by SIGKILL`. */
  readonly message: string
}

/** Something that has been started. */
export interface Run {
  /** For the event: `Process "containerd" started with PID 42`. */
  readonly description: string
  readonly pid?: number
  /** Resolves once nothing of the run is left; never rejects. */
  readonly exit: Promise<Exit>
  /** Asks it (SIGTERM) or makes it (SIGKILL) end. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): void | Promise<void>
}

/** Starts one run; throws when it cannot be started. */
export type Runner = (life: Life) => Promise<Run>

/** Thrown by `prepare` when there is nothing to run on this node. */
export class Skip extends Error {
  override name = 'Skip'
}
