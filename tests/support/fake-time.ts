/** Time that passes when a test lets it: timers, the monotonic clock and the wall clock go together. */
import { jest } from 'bun:test'
import { type Clock, makeClock } from '../../src/cosi/clock.ts'
import type { Runtime } from '../../src/cosi/runtime.ts'

/** Timers fire at most this long after their time, in milliseconds of the test. */
const step = 1_000

export interface FakeTime extends Disposable {
  /** What the runtime under test gets as its clock. */
  readonly clock: Clock
  /** Lets so many milliseconds pass; the rounds that become due are over when it resolves. */
  pass(runtime: Runtime, milliseconds: number): Promise<void>
  /** Sets the wall clock forward or back, as NTP does; nothing else notices. */
  stepWall(milliseconds: number): void
}

/** Stops all timers until `pass`; `using` gives the real ones back at the end of the test. */
export function fakeTime(start = Date.UTC(2026, 0, 1)): FakeTime {
  jest.useFakeTimers()
  let [wall, elapsed] = [start, 0]
  return {
    clock: makeClock({ now: () => new Date(wall), elapsed: () => elapsed }),
    async pass(runtime, milliseconds) {
      await runtime.settled()
      for (let left = milliseconds; left > 0; left -= step) {
        const part = Math.min(step, left)
        wall += part
        elapsed += part
        jest.advanceTimersByTime(part)
        await runtime.settled()
      }
    },
    stepWall(milliseconds) {
      wall += milliseconds
    },
    [Symbol.dispose]() {
      jest.useRealTimers()
    },
  }
}
