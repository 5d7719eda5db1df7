import { encode } from '../../../rpc/codec.ts'
import { messageType } from '../../../rpc/schema.ts'
import { readers, serverStream } from '../../../rpc/server/method.ts'
import type { Machine } from '../../area.ts'

/** Events of the machine, from a point of the past on; the stream ends when the caller closes it. */
export const eventsMethod = ({ events }: Pick<Machine, 'events'>) =>
  serverStream('machine.MachineService/Events', readers, async function* (request, { signal }) {
    const from = {
      tail: request.tailEvents,
      afterId: request.tailId,
      seconds: request.tailSeconds,
      actorId: request.withActorId,
    }
    for await (const { id, type, payload, actorId } of events.follow(from, signal))
      yield { id, actorId, data: { type_url: `talos/runtime/${type}`, value: encode(messageType(type), payload) } }
  })
