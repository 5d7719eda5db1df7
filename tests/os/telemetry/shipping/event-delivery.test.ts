/** Events to a sink over gRPC, which comes and goes. */
import { afterEach, expect, test } from 'bun:test'
import { systemClock } from '../../../../src/cosi/clock.ts'
import { silent } from '../../../../src/cosi/log.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { Outbound } from '../../../../src/os/outbound.ts'
import { Events } from '../../../../src/os/runtime/events.ts'
import { DeliveryCounts } from '../../../../src/os/telemetry/shipping/delivery-counts.ts'
import { deliverEvents, EventPosition } from '../../../../src/os/telemetry/shipping/event-delivery.ts'
import { unary } from '../../../../src/rpc/server/method.ts'
import { type Server, servePlain } from '../../../../src/rpc/server/server.ts'

const servers: Server[] = []
let stop = new AbortController()
afterEach(async () => {
  stop.abort()
  stop = new AbortController()
  for (const server of servers.splice(0)) server.close()
})

/** A sink that answers after it has seen an event, and the events that it saw. */
async function sink(port = 0) {
  const seen: { id: string; type: string; actorId: string }[] = []
  let came = () => {}
  const publish = unary('events.EventSinkService/Publish', ['os:admin'], ({ id, actorId, data }) => {
    seen.push({ id, type: data?.type_url ?? '', actorId })
    came()
    return {}
  })
  const server = await servePlain(
    { port, host: '127.0.0.1' },
    { methods: [publish], store: new Store(), log: silent, roles: () => new Set(['os:admin' as const]) },
  )
  servers.push(server)
  const saw = async (count: number) => {
    while (seen.length < count) await new Promise<void>((resolve) => (came = resolve))
    return seen
  }
  return { server, saw, seen }
}

function start(port: number, events: Events) {
  const counts = new DeliveryCounts(`127.0.0.1:${port}`, systemClock)
  const outbound = new Outbound({ publicRoots: '', addedRoots: () => '', variables: () => [] })
  const position = new EventPosition(events)
  const done = deliverEvents(`127.0.0.1:${port}`, position, { counts, outbound, log: silent, firstDelay: 5 }, stop.signal)
  return { counts, position, done }
}

const publish = (events: Events, number: number) =>
  events.publish('machine.PhaseEvent', { phase: `p${number}`, action: 0 }, `actor${number}`)

test('a sink gets the events that are kept, then new ones, in order and once each', async () => {
  const events = new Events()
  for (const number of [0, 1, 2]) publish(events, number)
  const { server, saw } = await sink()
  const { position } = start(server.port, events)
  await saw(3)
  publish(events, 3)
  const seen = await saw(4)
  expect(seen.map(({ actorId }) => actorId)).toEqual(['actor0', 'actor1', 'actor2', 'actor3'])
  expect(new Set(seen.map(({ type }) => type))).toEqual(new Set(['type.googleapis.com/machine.PhaseEvent']))
  expect(seen.map(({ id }) => id)).toEqual(seen.map(({ id }) => id).toSorted())
  expect(position.next).toBeLessThanOrEqual(4)
})

test('a sink that returns gets what was published meanwhile, and what was overwritten is counted', async () => {
  const events = new Events()
  const first = await sink()
  const { port } = first.server
  const { counts, done } = start(port, events)
  publish(events, 0)
  await first.saw(1)
  first.server.close()
  for (let number = 1; number <= 1200; number++) publish(events, number)
  while (counts.lastError === '') await new Promise((resolve) => setImmediate(resolve))
  const second = await sink(port)
  const seen = await second.saw(990)
  expect(seen[0]?.actorId).toBe('actor211')
  expect(seen.at(-1)?.actorId).toBe('actor1200')
  expect(counts.dropped).toBe(210)
  stop.abort()
  await done
})
