/** The state of a controller, as diagnosis reads it. */

import { errnoOf } from '../wire/errno.ts'
import { messageOf } from '../wire/error-message.ts'
import type { Clock } from './clock.ts'
import type { Input } from './controller.ts'
import type { ResourceType } from './resource.ts'

/** A recurring failure. */
export interface Trouble {
  readonly message: string
  /** The background task that failed. */
  readonly task?: string
  /** The errno name of a failed system call. */
  readonly code?: string | undefined
  /** The time of the last failure, and of the first one since the last success. */
  readonly time: Date
  readonly since: Date
  readonly inRow: number
}

/** The failure after `before`, which is set while no success came in between. */
export function nextTrouble(before: Trouble | undefined, error: unknown, clock: Clock): Trouble {
  const time = clock.now()
  return { message: messageOf(error), code: errnoOf(error), time, since: before?.since ?? time, inRow: (before?.inRow ?? 0) + 1 }
}

/** A resource that was requested and did not exist; without an id, a whole type without resources. */
export interface Missing {
  readonly type: ResourceType
  readonly namespace: string
  readonly id: string
}

/** The state of a controller, for diagnosis. */
export interface ControllerState {
  readonly name: string
  rounds: number
  failures: number
  /** Milliseconds spent in its rounds, waiting included. */
  spent: number
  /** Set while the last round failed. */
  lastError?: Trouble | undefined
  /** Problems that its background tasks have reported and keep retrying, by task. */
  readonly troubles: Map<string, Trouble>
  /** Resources that the last round requested and that did not exist. */
  missing: readonly Missing[]
  /** Inputs that its rounds requested besides the declared ones. */
  alsoReads: readonly Input[]
  running: boolean
  /** When the current round began: by the wall clock for display, and by the monotonic clock. */
  roundSince?: { readonly time: Date; readonly elapsed: number } | undefined
  due: boolean
}

/** The state before the first round. */
export function initialState(name: string): ControllerState {
  return { name, rounds: 0, failures: 0, spent: 0, troubles: new Map(), missing: [], alsoReads: [], running: false, due: false }
}
