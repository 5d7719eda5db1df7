/** Problems that a service's own state reveals. */

import { type End, endsIn } from '../../supervise/ends.ts'
import type { ServiceEvent, ServiceSnapshot } from '../../supervise/snapshot.ts'
import type { Cause } from './cause.ts'

/** Why a service is unhealthy. */
export interface ServiceTrouble extends Pick<Cause, 'sentence' | 'error' | 'code' | 'times' | 'since' | 'quiet' | 'logOf'> {
  /** What it waits for, or depends on, may be the reason. */
  readonly dependsOnOthers?: boolean
}

/** Why a service is unhealthy; nothing when it is not. With a health check (`watched`) it is unhealthy until the check has passed. */
export function serviceTrouble({ id, state, health, steady, events }: ServiceSnapshot, watched: boolean): ServiceTrouble | undefined {
  const last = events.at(-1)
  const trouble = (sentence: string, rest: Partial<ServiceTrouble> = {}): ServiceTrouble => ({ sentence, since: last?.time, ...rest })
  // Exits since it was last healthy: a service that is restarted again and again is unhealthy also while it runs.
  const ends = endsSinceHealthy(events)
  const unstable = () =>
    trouble('it does not stay up', {
      error: ends.at(-1)?.message,
      code: ends.at(-1)?.code,
      times: ends.length,
      since: ends[0]?.time,
      ...(ends.at(-1)?.ran && { logOf: id }),
    })
  switch (state) {
    case 'Running':
      if (health.healthy) return undefined
      if (!health.unknown)
        return trouble('it runs and is not healthy', { error: health.lastMessage, since: health.lastChange, dependsOnOthers: true })
      if (!watched && steady) return undefined
      if (ends.length > 0) return unstable()
      return watched ? trouble('it was started and has not passed its health check yet', { quiet: true }) : undefined
    case 'Waiting':
      if (last?.step === 'retry') return unstable()
      return trouble(last?.message ? lower(last.message) : 'it waits', { quiet: true, dependsOnOthers: true })
    case 'Preparing':
    case 'Starting':
      if (ends.length > 0) return unstable()
      // Remarks within a state describe its progress; steps only name the state.
      return trouble(`it is being prepared${last && !last.step ? `: ${lower(last.message)}` : ''}`, { dependsOnOthers: true })
    case 'Failed':
      return trouble('it ended and is not restarted by itself', { error: last?.message, code: last?.code, logOf: id })
    default:
      return trouble(`it is ${state.toLowerCase()}${last ? `: ${lower(last.message)}` : ''}`)
  }
}

/** Those since it was last healthy or was requested to start. */
function endsSinceHealthy(events: readonly ServiceEvent[]): End[] {
  const last = events.findLastIndex(({ health, step }) => health.healthy || step === 'start')
  return endsIn(events.slice(Math.max(0, last)))
}

const lower = (sentence: string) => sentence.charAt(0).toLowerCase() + sentence.slice(1)
