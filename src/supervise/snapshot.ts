/** What a service shows of itself: how it stands, and what happened to it. */
import type { Health } from './health.ts'
import type { State, Step } from './state.ts'

/** Something that happened to a service. */
export interface ServiceEvent {
  readonly id: string
  readonly state: State
  /** The step that led to the state; none for a remark within it. */
  readonly step?: Step
  readonly message: string
  readonly time: Date
  readonly health: Health
}

/** A service as it stands now; events are oldest first. */
export interface ServiceSnapshot {
  readonly id: string
  readonly state: State
  readonly health: Health
  readonly pid?: number
  /** Its run has lasted for so long that one that went before it says nothing any more. */
  readonly steady: boolean
  /** Where in its log the last run that ended began. */
  readonly logFrom: number
  readonly events: readonly ServiceEvent[]
}
