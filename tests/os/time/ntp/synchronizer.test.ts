import { describe, expect, test } from 'bun:test'
import { createLogger, type LogEntry } from '../../../../src/cosi/log.ts'
import { LeaveAlone, type Source, Synchronizer } from '../../../../src/os/time/ntp/synchronizer.ts'
import { World } from './world.ts'

function run(world: World, sources: readonly Source[]) {
  const entries: LogEntry[] = []
  const heard: { offset: number; stepped: boolean }[] = []
  let troubles = 0
  const log = createLogger((entry) => entries.push(entry))
  const done = new Synchronizer({ sources, clock: world, time: world, log }).run(
    { inStep: (what) => void heard.push(what), outOfReach: (error) => void (error && troubles++) },
    world.abort.signal,
  )
  return { done, entries, heard, troubles: () => troubles }
}

describe('a clock synchronized with servers', () => {
  test.each([
    ['drifts fast', 80e-6],
    ['drifts slowly', -5e-6],
  ])('and %s is a few milliseconds right after an hour, and polled less often', async (_, drift) => {
    const world = new World({ error: 0.3, drift, end: 6 * 3600 })
    await run(world, [world.server('a', { seed: 1 }), world.server('b', { seed: 2 }), world.server('c', { seed: 3 })]).done
    expect(Math.abs(world.error)).toBeLessThan(0.003)
    expect(world.corrections.filter((what) => what.startsWith('step'))).toEqual([])
    expect(Math.max(...world.polls)).toBeGreaterThan(6)
  })

  test('that is far off at first is stepped at once, then slewed', async () => {
    const world = new World({ error: -86_400, end: 600 })
    const { heard, done } = run(world, [world.server('a')])
    await done
    expect(Math.abs(heard[0]!.offset - 86_400)).toBeLessThan(0.1)
    expect(world.corrections[0]).toStartWith('step')
    expect(world.corrections.filter((what) => what.startsWith('step')).length).toBe(1)
    expect(heard[0]).toMatchObject({ stepped: true })
    expect(Math.abs(world.error)).toBeLessThan(0.005)
  })

  test('that was in step and is far off is stepped after several rounds agree', async () => {
    const world = new World({ end: 4000 })
    const source = world.server('a')
    const { done } = run(world, [source])
    // At half of the time the clock is set by hand.
    const sleep = world.sleep.bind(world)
    let meddled = false
    world.sleep = async (seconds) => {
      await sleep(seconds)
      if (!meddled && world.t > 2000) {
        meddled = true
        world.error += 30
      }
    }
    await done
    expect(world.corrections.filter((what) => what.startsWith('step'))).toHaveLength(1)
    expect(Math.abs(world.error)).toBeLessThan(0.005)
  })
})

describe('rejected', () => {
  test('a falseticker among three, however it answers', async () => {
    for (const off of [5, -0.2, 1000]) {
      const world = new World({ error: 0.1, end: 3600 })
      const { done, entries } = run(world, [
        world.server('a', { seed: 1 }),
        world.server('liar', { off, way: 0.0001, noise: 0, seed: 2 }),
        world.server('c', { seed: 3 }),
      ])
      await done
      expect(Math.abs(world.error)).toBeLessThan(0.005)
      expect(entries.some(({ message, fields }) => message.includes('rejected') && fields.servers === 'liar')).toBe(true)
    }
  })

  test('two servers that disagree: the clock is left alone', async () => {
    const world = new World({ error: 0.1, end: 300 })
    const { done, heard, troubles } = run(world, [world.server('a'), world.server('b', { off: 3 })])
    await done
    expect(world.corrections).toEqual([])
    expect(heard).toEqual([])
    expect(troubles()).toBeGreaterThan(0)
  })

  test('a single answer that is far off, or a spike', async () => {
    for (const mishap of [40, 0.25]) {
      const world = new World({ end: 4000 })
      let answers = 0
      const alter = (reading: { offset: number }) => (++answers === 20 ? { ...reading, offset: reading.offset + mishap } : reading)
      await run(world, [world.server('a', { alter: alter as never })]).done
      expect(world.corrections.filter((what) => what.startsWith('step'))).toEqual([])
      expect(world.corrections.filter((what) => Number.parseInt(what.slice(5), 10) > 100)).toEqual([])
    }
  })
})

test('a leap second is announced when most of the accepted servers announce it', async () => {
  const world = new World({ end: 600 })
  const leaping = (leap: number) => ({ alter: (reading: object) => ({ ...reading, leap }) as never })
  await run(world, [world.server('a', leaping(1)), world.server('b', leaping(1)), world.server('c', leaping(0))]).done
  expect(world.leap).toBe(1)
})

test('a server that sends RATE is left alone, a silent one is polled with growing intervals', async () => {
  const world = new World({ end: 300 })
  const polled: number[] = []
  const tired: Source = {
    name: 'tired',
    ask: async () => {
      polled.push(world.t)
      throw new LeaveAlone('refuses to answer: RATE', 64)
    },
  }
  const silent: number[] = []
  const away: Source = {
    name: 'away',
    ask: async () => {
      silent.push(world.t)
      throw new Error('no answer')
    },
  }
  const { done, troubles } = run(world, [tired, away])
  await done
  expect(polled.slice(1).every((at, index) => at - polled[index]! >= 64)).toBe(true)
  expect(silent.slice(0, 5)).toEqual([0, 1, 3, 7, 15])
  expect(troubles()).toBe(silent.length)
})
