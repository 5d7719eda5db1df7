/** Publishes events to a sink over gRPC, one call after another, in order. Each sink has a position of its own. */

import { packAny } from '../../../rpc/client/any.ts'
import { type Channel, connect } from '../../../rpc/client/channel.ts'
import type { Machine } from '../../area.ts'
import type { Events, MachineEvent } from '../../runtime/public.ts'
import { countDelivered, keepAttempting } from './attempts.ts'
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
  const attempt = async () => {
    let channel: Channel | undefined
    try {
      channel = connect(context.outbound.target(address, { plain: true }))
      for await (const { event, next, missed } of position.events.after(position.next, signal)) {
        await publish(channel, event, signal)
        if (missed > 0) counts.drop(missed, 'records')
        position.next = next
        if (!counts.isConnected) counts.connected()
        countDelivered(1, context)
      }
    } finally {
      channel?.close()
    }
  }
  await keepAttempting(attempt, { counts, log, firstDelay: context.firstDelay ?? firstDelay, longestDelay }, signal)
}

async function publish(channel: Channel, { id, type, payload, actorId }: MachineEvent, signal: AbortSignal): Promise<void> {
  const request = { id, actorId, data: packAny(type, payload, typePrefix) }
  await channel.unary('events.EventSinkService/Publish', request, { deadline: answerTimeout, signal })
}
