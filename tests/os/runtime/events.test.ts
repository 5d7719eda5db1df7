import { expect, spyOn, test } from 'bun:test'
import { Events, type EventsFrom } from '../../../src/os/runtime/events.ts'

async function take(events: Events, from: EventsFrom, count: number): Promise<string[]> {
  const stop = new AbortController()
  const seen: string[] = []
  for await (const { payload } of events.follow(from, stop.signal)) {
    seen.push(String(payload.n))
    if (seen.length === count) stop.abort()
  }
  return seen
}

test('a reader starts where it requests to: now, some events back, after an id, or at the beginning', async () => {
  const events = new Events()
  for (let n = 0; n < 5; n++) events.publish('machine.TaskEvent', { n })
  expect(await take(events, { tail: 2 }, 2)).toEqual(['3', '4'])
  expect(await take(events, { tail: -1 }, 5)).toEqual(['0', '1', '2', '3', '4'])
  const id = events.last('machine.TaskEvent', ({ n }) => n === 2)!.id
  expect(await take(events, { afterId: id }, 2)).toEqual(['3', '4'])
  const live = take(events, {}, 1)
  events.publish('machine.TaskEvent', { n: 'new' })
  expect(await live).toEqual(['new'])
})

test('ids grow with time and one actor can be selected', async () => {
  const events = new Events()
  events.publish('machine.TaskEvent', { n: 1 }, 'a')
  events.publish('machine.TaskEvent', { n: 2 }, 'b')
  expect(events.last('machine.TaskEvent', ({ n }) => n === 1)!.id < events.last('machine.TaskEvent')!.id).toBe(true)
  expect(events.last('machine.TaskEvent')!.id).toMatch(/^[0-9a-v]{20}$/)
  expect(await take(events, { tail: -1, actorId: 'b' }, 1)).toEqual(['2'])
})

test('a reader leaves nothing behind for each event that it waits for', async () => {
  const events = new Events()
  const stop = new AbortController()
  const added = spyOn(stop.signal, 'addEventListener')
  const reader = events.follow({}, stop.signal)
  for (let n = 0; n < 100; n++) {
    const next = reader.next()
    events.publish('machine.TaskEvent', { n })
    expect((await next).value?.payload).toEqual({ n })
  }
  const last = reader.next()
  stop.abort()
  expect((await last).done).toBe(true)
  expect(added).toHaveBeenCalledTimes(1)
})
