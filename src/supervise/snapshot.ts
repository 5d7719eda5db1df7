/** What a service reports about itself: its current state and its recent events. */
import type { Health } from './health.ts'
import type { State, Step } from './state.ts'

/** An event of a service. */
export interface ServiceEvent {
  readonly id: string
  readonly state: State
  /** The step that led to the state; absent for a message without a transition. */
  readonly step?: Step
  readonly message: string
  /** The errno name of the system call that failed. */
  readonly code?: string
  readonly time: Date
  readonly health: Health
}

/** The current state of a service; events are oldest first. */
export interface ServiceSnapshot {
  readonly id: string
  readonly state: State
  readonly health: Health
  readonly pid?: number | undefined
  /** How many runs were started. */
  readonly starts: number
  /** The run has lasted long enough that the end of the previous one is irrelevant. */
  readonly steady: boolean
  /** Offset in its log at which the last run that ended began. */
  readonly logFrom: number
  readonly events: readonly ServiceEvent[]
}
