/**
 * Delivers a feed to one destination: connects, sends, and records as delivered what the receiver's kernel acknowledged a second ago and
 * whose connection still stands. After a lost connection it reconnects, with a growing delay, and sends again what was not delivered. So a
 * receiver that restarts gets some lines twice rather than none.
 */
import type { Clock } from '../../../cosi/clock.ts'
import type { Logger } from '../../../cosi/log.ts'
import { countDelivered, keepAttempting } from './attempts.ts'
import { type Carrier, type CarrierContext, type OpenCarrier, stallTimeout } from './carrier.ts'
import type { DeliveryCounts } from './delivery-counts.ts'
import type { Endpoint } from './endpoint.ts'
import type { Batch, Feed } from './feed.ts'

/** Milliseconds. */
export interface DeliveryTiming {
  /** The first delay between two connections; it doubles up to the longest. */
  readonly firstDelay: number
  readonly longestDelay: number
  /** Between two looks at what was acknowledged. */
  readonly lookInterval: number
  /** After which something acknowledged counts as delivered: the receiver must also have read it. */
  readonly settleTime: number
}

const usual: DeliveryTiming = { firstDelay: 500, longestDelay: 10_000, lookInterval: 200, settleTime: 1000 }

/** What a delivery needs. */
export interface DeliveryContext extends CarrierContext {
  readonly open: OpenCarrier
  readonly clock: Pick<Clock, 'elapsed'>
  readonly log: Logger
  readonly counts: DeliveryCounts
  readonly timing?: DeliveryTiming
}

/** A batch that was sent and is not yet delivered. */
interface Sent {
  readonly batch: Batch
  /** `sent` of the connection after it. */
  readonly mark: number
  acknowledgedAt?: number
}

/** Delivers until the signal. Never rejects. */
export async function deliver(endpoint: Endpoint, feed: Feed, context: DeliveryContext, signal: AbortSignal): Promise<void> {
  const { counts, log, timing: { firstDelay, longestDelay } = usual } = context
  const attempt = async () => {
    const carrier = await context.open(endpoint, context, signal)
    counts.connected()
    await new Connection(carrier, context).run(feed, signal)
  }
  await keepAttempting(attempt, { counts, log, firstDelay, longestDelay }, signal)
}

/** One connection, from its start to its loss. */
class Connection {
  readonly #carrier: Carrier
  readonly #context: DeliveryContext
  readonly #sent: Sent[] = []
  readonly #stalled = new AbortController()
  #progress: { acknowledged: number; at: number }
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(carrier: Carrier, context: DeliveryContext) {
    this.#carrier = carrier
    this.#context = context
    this.#progress = { acknowledged: 0, at: context.clock.elapsed() }
  }

  /** Sends until the connection is lost, which it throws, or until the signal. */
  async run(feed: Feed, signal: AbortSignal): Promise<void> {
    const { lost } = this.#carrier
    const link = AbortSignal.any([signal, lost, this.#stalled.signal])
    try {
      for await (const batch of feed.batches(link)) {
        await this.#carrier.send(batch.texts)
        this.#sent.push({ batch, mark: this.#carrier.sent })
        this.#look()
        // Others want the thread too.
        await new Promise((resolve) => setImmediate(resolve))
      }
      lost.throwIfAborted()
      this.#stalled.signal.throwIfAborted()
    } finally {
      clearTimeout(this.#timer)
      this.#carrier.close()
    }
  }

  /** Looks at what was acknowledged, as long as something is not delivered. */
  #look(): void {
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined
        if (this.#carrier.lost.aborted) return
        this.#settle()
        if (this.#sent.length > 0) this.#look()
      },
      (this.#context.timing ?? usual).lookInterval,
    )
  }

  #settle(): void {
    const { clock, timing: { settleTime } = usual } = this.#context
    const now = clock.elapsed()
    const acknowledged = this.#carrier.acknowledged()
    if (acknowledged > this.#progress.acknowledged || acknowledged >= (this.#sent.at(-1)?.mark ?? 0))
      this.#progress = { acknowledged, at: now }
    else if (now - this.#progress.at > stallTimeout)
      this.#stalled.abort(new Error(`the receiver acknowledged nothing for ${stallTimeout / 1000} s`))
    let done = 0
    for (const sent of this.#sent) {
      if (sent.mark > acknowledged) break
      sent.acknowledgedAt ??= now
      if (now - sent.acknowledgedAt < settleTime) continue
      sent.batch.delivered()
      countDelivered(sent.batch.texts.length, this.#context)
      done++
    }
    this.#sent.splice(0, done)
  }
}
