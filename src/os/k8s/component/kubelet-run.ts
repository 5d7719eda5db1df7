/** How the kubelet runs since its last start, according to its supervisor and its log. */

import { endsIn } from '../../../supervise/ends.ts'
import { lastWordsOf } from '../../../supervise/last-words.ts'
import type { LogRing } from '../../../supervise/log-ring.ts'
import type { ServiceEvent, ServiceSnapshot } from '../../../supervise/snapshot.ts'
import type { Run } from './pod-run.ts'

/** The part of the supervisor that is used. */
interface Services {
  get(id: string): ServiceSnapshot | undefined
  readonly logs?: { get(id: string): Pick<LogRing, 'read'> | undefined }
}

/** Readiness, and the number of exits and failed starts since `after`, the newest event before it was started. */
export async function kubeletRun(services: Services, after: ServiceEvent | undefined): Promise<Run> {
  const { state, health, events = [], logFrom = 0 } = services.get('kubelet') ?? {}
  const ends = endsIn(after ? events.slice(events.indexOf(after) + 1) : events)
  const ready = state === 'Running' && (health?.healthy ?? false)
  const last = ends.at(-1)
  if (!last || ready) return { ready, failures: ends.length, error: '' }
  const words = last.ran ? (await lastWordsOf(services.logs?.get('kubelet'), logFrom)).split('\n').at(-1) : ''
  return { ready, failures: ends.length, error: words || last.message }
}
