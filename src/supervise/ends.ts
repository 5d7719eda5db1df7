import type { ServiceEvent } from './snapshot.ts'

/** One failure of a service. */
export interface End {
  readonly message: string
  readonly code?: string | undefined
  readonly time: Date
  /** Whether a process exited, rather than that none could be started. */
  readonly ran: boolean
}

/** All failures among these events, oldest first. */
export function endsIn(events: readonly ServiceEvent[]): End[] {
  return events.flatMap(({ step, message, code, time }, at) =>
    step === 'retry' || step === 'fail' ? { message, code, time, ran: events[at - 1]?.state === 'Running' } : [],
  )
}
