import { expect, test } from 'bun:test'
import { makeClock } from '../../../../src/cosi/clock.ts'
import { createLogger } from '../../../../src/cosi/log.ts'
import { end } from '../../../../src/os/lifecycle/stop.ts'
import { Deliveries } from '../../../../src/os/telemetry/shipping/deliveries.ts'
import { Destinations } from '../../../../src/os/telemetry/shipping/destinations.ts'

/** Deliveries on a clock that passes only while they wait; `step` is called with each moment. */
function machine(step: (now: number) => void = () => {}) {
  let now = 0
  const lines: string[] = []
  const clock = makeClock({
    elapsed: () => now,
    sleep: async (ms) => {
      now += ms
      step(now)
    },
  })
  const log = createLogger(({ message }) => lines.push(message))
  const deliveries = new Deliveries(clock, log)
  const destinations = new Destinations('logs', clock, () => ({ behind: 0, positions: {} }))
  deliveries.add(destinations)
  /** A receiver that does not have so much yet. */
  const receiver = (id: string, behind: number, connected = true) => {
    const { reader, counts } = destinations.get(id)
    if (connected) counts.connected()
    return Object.assign(reader, { behind }) as { behind: number }
  }
  return { deliveries, destinations, receiver, lines, now: () => now }
}

test('a machine without receivers, or whose receivers have everything, does not wait', async () => {
  const it = machine()
  await it.deliveries.drain()
  it.receiver('one', 0)
  await it.deliveries.drain()
  expect([it.now(), it.lines]).toEqual([0, []])
})

test('what waits is delivered first', async () => {
  const it = machine((now) => {
    if (now === 700) one.behind = 3
    if (now === 1500) one.behind = 0
  })
  const one = it.receiver('one', 900)
  await it.deliveries.drain()
  expect([it.now(), it.lines]).toEqual([1500, ['logs and events were delivered before the end']])
})

test('a receiver that is away is not waited for', async () => {
  const it = machine()
  it.receiver('away', 900, false)
  await it.deliveries.drain()
  expect(it.now()).toBe(0)
})

test('one that takes nothing is given up after 2 seconds, one that is slow after 5', async () => {
  const stalled = machine()
  stalled.receiver('stalled', 900)
  await stalled.deliveries.drain()
  expect([stalled.now(), stalled.lines]).toEqual([2000, ['logs or events were not delivered before the end']])
  const it = machine(() => slow.behind--)
  const slow = it.receiver('slow', 900)
  await it.deliveries.drain()
  expect([it.now(), it.lines]).toEqual([5000, ['logs or events were not delivered before the end']])
})

test('the end of a machine comes after its deliveries, and before that its log is still open', async () => {
  const order: string[] = []
  const part = (name: string) => async () => void order.push(name)
  const here = { deliveries: { drain: part('deliver') }, logFiles: { close: part('close the log') }, end: part('end') }
  const [task] = end(here as never, 'reboot').tasks
  await task?.run({} as never)
  expect(order).toEqual(['deliver', 'close the log', 'end'])
})
