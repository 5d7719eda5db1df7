/** The definition of a service: its dependencies, what it runs, its health check and its restart policy. */

import type { Clock } from '../cosi/clock.ts'
import type { Store } from '../cosi/store.ts'
import type { HealthCheck } from './health.ts'
import type { LogRing } from './log-ring.ts'

/** Read access to the store; a condition is re-evaluated when a resource type it has read changes. */
export type StoreView = Pick<Store, 'get' | 'list'>

/** Actions that the API may offer for a service. */
export type OperatorAction = 'start' | 'stop' | 'restart'

/** Whether a run that has ended is followed by another. */
export type RestartPolicy = 'always' | 'never' | 'untilSuccess'

/** One service of the node. */
export interface ServiceDefinition {
  readonly id: string
  /** Services that must be up before this one is prepared, and that are stopped after it. */
  readonly dependsOn: readonly string[]
  /** Services that it starts without but may use later: they are stopped after it too. */
  readonly outlivedBy?: readonly string[]
  /** Names of the unmet conditions; evaluated again whenever a resource type it has read changes. */
  readonly wait?: (store: StoreView) => string[]
  /** Provides what a run needs. Called before each run, so it must be idempotent. Throw `Skip` when there is nothing to run. */
  readonly prepare?: (context: RunContext) => Promise<void>
  readonly runner: Runner
  readonly health?: HealthCheck
  readonly restart: RestartPolicy
  /** OOM score of the service's processes, -1000 to 1000. */
  readonly oom?: number
  /** Control group, from the node's root: `/system/apid`. */
  readonly cgroup?: string
  /** The domain of the service's processes under SELinux (rootfs/selinux). Default: that of init. */
  readonly domain?: string
  /** Milliseconds between SIGTERM and SIGKILL. Default: 10,000. */
  readonly stopTimeout?: number
  /** The outside party that it connects to: where it fails, an explanation checks whether that answers. */
  readonly contacts?: string
  /** Actions that the API allows. Default: none. */
  readonly operator?: readonly OperatorAction[]
}

/** What the code of a service gets for one start. */
export interface RunContext {
  readonly definition: ServiceDefinition
  readonly store: StoreView
  readonly output: LogRing
  readonly clock: Clock
  /** The OOM score to set: the definition's, raised to the lowest that is allowed here. */
  readonly oom?: number | undefined
  /** Aborted when the service is stopped. */
  readonly signal: AbortSignal
  /** Adds an event without changing the state. */
  note(message: string): void
  /** Registers the process before it executes its first instruction, so that its calls are attributed to the service. */
  created(pid: number): void
}

/** The result of a run. */
export interface Exit {
  readonly ok: boolean
  /** The errno name of the system call that failed. */
  readonly code?: string | undefined
  /** Whether a signal ended it, so that the end was not its own decision. */
  readonly killed?: boolean | undefined
  /** `exited with code 1`, `killed by SIGKILL`. */
  readonly message: string
}

/** A run that has been started. */
export interface Run {
  /** The message of the event: `Process "containerd" started with PID 42`. */
  readonly description: string
  readonly pid?: number
  /** Resolves once nothing of the run is left; never rejects. */
  readonly exit: Promise<Exit>
  /** Sends a signal: SIGTERM requests the end, SIGKILL forces it. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): void | Promise<void>
}

/** Starts one run; throws when it cannot be started. */
export type Runner = (context: RunContext) => Promise<Run>

/** Thrown by `prepare` when there is nothing to run on this node. */
export class Skip extends Error {
  override name = 'Skip'
}
