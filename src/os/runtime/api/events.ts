import { ownEvents } from '../../../rpc/caller-metadata.ts'
import { encode } from '../../../rpc/codec.ts'
import { messageType } from '../../../rpc/schema.ts'
import { readers, serverStream } from '../../../rpc/server/method.ts'
import type { Machine } from '../../area.ts'

/** Types that the field's clients decode; at any other they end the watch. */
const known = /^machine\./

/** Events of the machine, from a point of the past on; the stream ends when the caller closes it. */
export const eventsMethod = ({ events }: Pick<Machine, 'events'>) =>
  serverStream('machine.MachineService/Events', readers, async function* (request, { signal, metadata }) {
    const from = {
      tail: request.tailEvents,
      afterId: request.tailId,
      seconds: request.tailSeconds,
      actorId: request.withActorId,
    }
    const all = metadata[ownEvents] !== undefined
    const following = events.follow(from, signal)
    // Clients wait for an empty event, drop it, and only then cause the events that they look for.
    yield { id: events.nextId(), actorId: request.withActorId, data: { type_url: '', value: new Uint8Array() } }
    for await (const { id, type, payload, actorId } of following)
      if (all || known.test(type))
        yield { id, actorId, data: { type_url: `talos/runtime/${type}`, value: encode(messageType(type), payload) } }
  })
