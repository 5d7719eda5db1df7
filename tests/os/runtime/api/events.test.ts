import { expect, test } from 'bun:test'
import { eventsMethod } from '../../../../src/os/runtime/api/events.ts'
import { Events } from '../../../../src/os/runtime/events.ts'
import { ownEvents } from '../../../../src/rpc/caller-metadata.ts'

interface Reply {
  id: string
  actorId: string
  data: { type_url: string; value: Uint8Array }
}

/** A call of the method that is read event by event. */
function call(events: Events, request: object = {}, metadata: object = {}) {
  const stop = new AbortController()
  const { handle } = eventsMethod({ events })
  const defaults = { tailEvents: 0, tailId: '', tailSeconds: 0, withActorId: '' }
  const replies = handle({ ...defaults, ...request } as never, { signal: stop.signal, metadata } as never) as AsyncGenerator<Reply>
  const types = async (count: number) => {
    const seen: string[] = []
    while (seen.length < count) seen.push((await replies.next()).value?.data.type_url)
    return seen
  }
  return { replies, types, stop }
}

test('a stream begins with an empty event of the actor, although nothing has happened', async () => {
  const { replies } = call(new Events(), { withActorId: 'one' })
  expect((await replies.next()).value).toEqual({
    id: expect.stringMatching(/^[0-9a-v]{20}$/),
    actorId: 'one',
    data: { type_url: '', value: new Uint8Array() },
  })
})

test('what happens after the empty event was sent, and before the next is read, is sent', async () => {
  const events = new Events()
  const { types } = call(events)
  await types(1)
  events.publish('machine.SequenceEvent', { sequence: 'reboot', action: 1 })
  expect(await types(1)).toEqual(['talos/runtime/machine.SequenceEvent'])
})

test('events of types that the field cannot decode are sent to clients that request them', async () => {
  const events = new Events()
  events.publish('ichor.v1.EtcdBackupEvent', { action: 0 })
  events.publish('machine.TaskEvent', { task: 'one', action: 0 })
  const task = 'talos/runtime/machine.TaskEvent'
  expect(await call(events, { tailEvents: -1 }).types(2)).toEqual(['', task])
  const all = call(events, { tailEvents: -1 }, { [ownEvents]: ['1'] })
  expect(await all.types(3)).toEqual(['', 'talos/runtime/ichor.v1.EtcdBackupEvent', task])
})
