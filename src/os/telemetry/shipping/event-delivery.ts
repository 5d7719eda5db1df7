/** Publishes events to a sink over gRPC, one call after another, in order. Each sink has a position of its own. */
import { packAny } from '../../../rpc/client/any.ts'
import { type Channel, connect } from '../../../rpc/client/channel.ts'
import { pause } from '../../../timing/pause.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { Machine } from '../../area.ts'
import type { Events, MachineEvent } from '../../runtime/events.ts'
import type { DeliveryCounts } from './delivery-counts.ts'

const firstDelay = 500
const longestDelay = 10_000
/** Milliseconds for the answer of a sink. */
const answerTimeout = 10_000
/** Precedes the name of a message in an event's type URL, other than in answers of the machine's own API. */
const typePrefix = 'type.googleapis.com/'

/** What a sink got: the position of the next event. */
export class EventPosition {
  constructor(
    readonly events: Pick<Events, 'start' | 'end' | 'after'>,
    /** The next event; at first the oldest one kept. */
    public next: number = events.start,
  ) {}

  get behind(): number {
    return this.events.end - this.next
  }

  get positions(): Record<string, number> {
    return { events: this.next }
  }
}

/** What the delivery needs. */
interface EventContext extends Pick<Machine, 'log' | 'outbound'> {
  readonly counts: DeliveryCounts
  readonly firstDelay?: number
}

/** Publishes until the signal. Never rejects. */
export async function deliverEvents(address: string, position: EventPosition, context: EventContext, signal: AbortSignal): Promise<void> {
  const { counts, log } = context
  const first = context.firstDelay ?? firstDelay
  let delay = 0
  while (!signal.aborted) {
    const before = counts.sent
    let channel: Channel | undefined
    try {
      channel = connect(context.outbound.target(address, { plain: true }))
      for await (const { event, next, missed } of position.events.after(position.next, signal)) {
        await publish(channel, event, signal)
        if (missed > 0) counts.drop(missed, 'records')
        position.next = next
        if (!counts.isConnected) counts.connected()
        counts.deliver(1)
        if (counts.recovered()) log.info('delivery resumed', { destination: address, dropped: counts.dropped })
      }
    } catch (error) {
      if (signal.aborted) return
      if (counts.failed(messageOf(error))) log.warn('delivery failed, retrying', { destination: address, error })
    } finally {
      channel?.close()
    }
    delay = counts.sent > before ? first : Math.min(longestDelay, Math.max(first, delay * 2))
    await pause(delay, signal)
  }
}

async function publish(channel: Channel, { id, type, payload, actorId }: MachineEvent, signal: AbortSignal): Promise<void> {
  const request = { id, actorId, data: packAny(type, payload, typePrefix) }
  await channel.unary('events.EventSinkService/Publish', request, { deadline: answerTimeout, signal })
}
