/** Exports to a collector: spans as they come, in batches, and metrics at intervals. */
import type { Clock } from '../../../cosi/clock.ts'
import type { Logger } from '../../../cosi/log.ts'
import { pause } from '../../../timing/pause.ts'
import type { Metric } from '../metrics/exposition.ts'
import { countDelivered, keepAttempting } from '../shipping/attempts.ts'
import type { DeliveryCounts } from '../shipping/delivery-counts.ts'
import type { Feed } from '../shipping/feed.ts'
import type { SpanQueue } from '../traces/span-queue.ts'
import { logsRequest } from './log-records.ts'
import { type About, metricsRequest, tracesRequest } from './requests.ts'
import type { Outcome, Sender } from './sender.ts'

/** What an export needs. */
export interface ExportContext {
  readonly sender: Sender
  readonly about: About
  readonly counts: DeliveryCounts
  readonly log: Logger
  readonly clock: Pick<Clock, 'now'>
  /** Milliseconds of the first delay after a failure; it doubles up to the longest. */
  readonly firstDelay?: number
}

const defaultFirstDelay = 1000
const longestDelay = 60_000

/** Sends spans until the signal; what is not sent then stays in the queue. Never rejects. */
export async function exportSpans(queue: SpanQueue, context: ExportContext, signal: AbortSignal): Promise<void> {
  const { sender, about } = context
  await attempting(
    context,
    async (settle) => {
      for await (const batch of queue.batches(signal)) {
        await settle(batch.length, await sender.send('traces', tracesRequest(batch, about), signal))
        queue.remove(batch)
      }
    },
    signal,
  )
}

/** Reads and sends metrics at intervals until the signal. What a collector does not take is in its next reading. Never rejects. */
export async function exportMetrics(
  read: () => readonly Metric[],
  interval: number,
  context: ExportContext,
  signal: AbortSignal,
): Promise<void> {
  const { sender, about, clock } = context
  const since = clock.now().getTime()
  await attempting(
    context,
    async (settle) => {
      while (!signal.aborted) {
        const { request, points } = metricsRequest(read(), { ...about, since, now: clock.now().getTime() })
        await settle(points, await sender.send('metrics', request, signal))
        await pause(interval, signal)
      }
    },
    signal,
  )
}

/** Sends logs until the signal. What a collector does not have is sent again, from the disk when memory no longer has it. Never rejects. */
export async function exportLogs(feed: Feed, context: ExportContext, signal: AbortSignal): Promise<void> {
  const { sender, about, clock } = context
  await attempting(
    context,
    async (settle) => {
      for await (const { texts, delivered } of feed.batches(signal)) {
        await settle(texts.length, await sender.send('logs', logsRequest(texts, about, clock.now().getTime()), signal))
        delivered()
      }
    },
    signal,
  )
}

type Settle = (count: number, outcome: Outcome) => Promise<void>

async function attempting(context: ExportContext, work: (settle: Settle) => Promise<void>, signal: AbortSignal): Promise<void> {
  const { counts, log, firstDelay = defaultFirstDelay } = context
  const settle: Settle = async (count, outcome) => {
    if (outcome.kind === 'later') {
      if (outcome.after !== undefined) await pause(outcome.after, signal)
      throw new Error(outcome.why)
    }
    if (!counts.isConnected) counts.connected()
    const rejected = outcome.kind === 'refused' ? count : Math.min(count, outcome.rejected)
    if (rejected > 0) {
      counts.drop(rejected, 'records')
      // What the collector does not want stays unwanted, so its reason is logged and nothing is sent again.
      if (counts.failed(outcome.why))
        log.warn('the collector rejects telemetry', { destination: counts.destination, reason: outcome.why, rejected })
      counts.connected()
    }
    if (rejected < count) {
      if (rejected > 0) counts.deliver(count - rejected)
      else countDelivered(count, context)
    }
  }
  await keepAttempting(() => work(settle), { counts, log, firstDelay, longestDelay }, signal)
}
