import type { Clock } from '../../../cosi/clock.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { DeliveryCounts } from './delivery-counts.ts'
import type { Dropped } from './feed.ts'

/** Milliseconds between two log lines about what one destination loses: the line goes to the destination too. */
const interval = 60_000

/** Counts what is lost to a destination, and logs it once a minute at most, with the sum since the last time. */
export function dropReporter(counts: DeliveryCounts, log: Logger, clock: Pick<Clock, 'elapsed'>): Dropped {
  let next = Number.NEGATIVE_INFINITY
  const sums = { bytes: 0, records: 0 }
  return (source, count, unit) => {
    counts.drop(count, unit)
    sums[unit] += count
    if (clock.elapsed() < next) return
    next = clock.elapsed() + interval
    const { destination } = counts
    log.warn('lost before delivery', { destination, source, ...sums })
    Object.assign(sums, { bytes: 0, records: 0 })
  }
}
