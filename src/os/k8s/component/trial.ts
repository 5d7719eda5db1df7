/**
 * The trial of a component's settings.
 *
 * Settings that a component ran with for a while are good and kept. Other settings are tried: the component is started with
 * them. When it runs with them for a while, they are good. When it fails twice before that, they are rejected, and the good ones
 * are in effect again until the configuration changes once more. Without good settings there is no fallback: the first settings
 * of a new machine are tried for as long as it takes.
 */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { ComponentStatus } from '../resources/component.ts'

/** Settings and their digest. */
export interface Settings {
  readonly digest: string
  readonly section: unknown
}

/** Settings that did not start. */
export interface Rejection extends Settings {
  readonly error: string
  /** RFC 3339. */
  readonly since: string
}

/** The state of one component. */
export interface TrialState {
  readonly good?: Settings
  readonly rejected?: Rejection
}

/** An observation of the component. */
export interface Observation {
  readonly status: SpecOf<typeof ComponentStatus> | undefined
  /** The settings it runs with, as far as they are known. */
  readonly running?: Settings
  /** Milliseconds for which it has been ready with these settings and without another failure. */
  readonly readyFor: number
  /** Whether its dependencies (etcd) are available: otherwise its failures are not caused by its settings. */
  readonly judged: boolean
  readonly now: Date
}

/** Milliseconds of running after which settings are good. A wrong flag ends a component at once, a wrong file within seconds. */
export const settleTime = 20_000

/** Failures after which settings are rejected: the first may be a port that is not free yet. */
export const failureLimit = 2

/** The state after an observation; the same object when nothing changed. */
export function judge(state: TrialState, wanted: Settings, seen: Observation): TrialState {
  const { good, rejected } = state
  const { status, running } = seen
  // A component that takes its settings at its next start continues with earlier ones, which may be good.
  if (running && running.digest !== wanted.digest && running.digest !== good?.digest && status?.ready && seen.readyFor >= settleTime)
    return { ...state, good: running }
  if (good?.digest === wanted.digest) return rejected ? { good } : state
  if (good && rejected?.digest === wanted.digest) return state
  if (status?.settings !== wanted.digest) return state
  if (status.ready && seen.readyFor >= settleTime) return { good: wanted }
  if (good && seen.judged && status.failures >= failureLimit)
    return { good, rejected: { ...wanted, error: status.error ?? '', since: seen.now.toISOString() } }
  return state
}

/** The rejection of the desired settings, if there is one. */
export function rejectionOf({ good, rejected }: TrialState, wanted: Settings): Rejection | undefined {
  return good && rejected?.digest === wanted.digest ? rejected : undefined
}
