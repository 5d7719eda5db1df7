import { afterEach, describe, expect, jest, setSystemTime, test } from 'bun:test'
import { makeClock, systemClock } from '../../src/cosi/clock.ts'
import { defineController } from '../../src/cosi/controller.ts'
import { silent } from '../../src/cosi/log.ts'
import { Runtime } from '../../src/cosi/runtime.ts'
import { Store } from '../../src/cosi/store.ts'
import { fakeTime } from '../support/fake-time.ts'

const day = 86_400_000

afterEach(() => {
  jest.useRealTimers()
  setSystemTime()
})

describe('a deadline', () => {
  test.each([day, -day])('does not move when the wall clock is stepped by %d ms', (step) => {
    const end = systemClock.deadline(60_000)
    setSystemTime(new Date(Date.now() + step))
    expect(end.over).toBe(false)
    expect(end.left).toBeGreaterThan(59_000)
    expect(end.left).toBeLessThanOrEqual(60_000)
  })

  test('is over once its time has passed, with nothing left', () => {
    let time = 5
    const end = makeClock({ elapsed: () => time }).deadline(10)
    expect([end.left, end.over]).toEqual([10, false])
    time = 15
    expect([end.left, end.over]).toEqual([0, true])
    time = 1000
    expect([end.left, end.over]).toEqual([0, true])
  })
})

describe('a round that waits for a time', () => {
  /** A controller that runs once, and again at `moment`; the test sets the wall clock. */
  function waiting(moment: number) {
    const time = fakeTime(Date.UTC(2026, 0, 1))
    const runtime = new Runtime(new Store(), { log: silent, clock: time.clock })
    let rounds = 0
    runtime.register(
      defineController({
        name: 'test.Renewal',
        inputs: {},
        outputs: {},
        reconcile({ wakeAt }) {
          rounds++
          wakeAt(new Date(Date.UTC(2026, 0, 1) + moment))
        },
      }),
    )
    runtime.start()
    const pass = (ms: number) => time.pass(runtime, ms)
    return { time, pass, rounds: () => rounds, stop: () => runtime.stop() }
  }

  test('starts when the wall clock reaches it', async () => {
    const { pass, rounds, stop } = waiting(100_000)
    await pass(98_000)
    expect(rounds()).toBe(1)
    await pass(3_000)
    expect(rounds()).toBeGreaterThan(1)
    stop()
  })

  test('starts within half a minute when the wall clock is stepped past it', async () => {
    const { time, pass, rounds, stop } = waiting(day / 2)
    await pass(5_000)
    time.stepWall(day)
    await pass(31_000)
    expect(rounds()).toBeGreaterThan(1)
    stop()
  })

  test('does not start early when the wall clock is stepped back', async () => {
    const { time, pass, rounds, stop } = waiting(60_000)
    await pass(5_000)
    time.stepWall(-day)
    await pass(120_000)
    expect(rounds()).toBe(1)
    stop()
  })

  test('does not spin when the time is already past', async () => {
    const { pass, rounds, stop } = waiting(-day)
    await pass(10_000)
    expect(rounds()).toBeLessThanOrEqual(11)
    stop()
  })
})
