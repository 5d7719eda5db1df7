import type { Logger } from '../../../cosi/log.ts'
import { pause } from '../../../timing/pause.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { DeliveryCounts } from './delivery-counts.ts'

/** What the attempts of one destination need. */
interface AttemptContext {
  readonly counts: DeliveryCounts
  readonly log: Logger
  /** Milliseconds between two attempts: the delay doubles up to the longest, and is the first one again after something was taken. */
  readonly firstDelay: number
  readonly longestDelay: number
}

/** Runs one attempt after another until the signal. Never rejects: a failure is counted, and the first in a row logged. */
export async function keepAttempting(
  attempt: () => Promise<void>,
  { counts, log, firstDelay, longestDelay }: AttemptContext,
  signal: AbortSignal,
): Promise<void> {
  let delay = 0
  while (!signal.aborted) {
    const before = counts.sent
    try {
      await attempt()
    } catch (error) {
      if (signal.aborted) return
      if (counts.failed(messageOf(error))) log.warn('delivery failed, retrying', { destination: counts.destination, error })
    }
    // A receiver that took something is tried again soon.
    delay = counts.sent > before ? firstDelay : Math.min(longestDelay, Math.max(firstDelay, delay * 2))
    await pause(delay, signal)
  }
}

/** Counts messages as delivered, and logs the end of failures. */
export function countDelivered(messages: number, { counts, log }: Pick<AttemptContext, 'counts' | 'log'>): void {
  counts.deliver(messages)
  if (counts.recovered()) log.info('delivery resumed', { destination: counts.destination, dropped: counts.dropped })
}
