import { afterEach, describe, expect, jest, test } from 'bun:test'
import { pause } from '../../src/timing/pause.ts'
import { timerDelay } from '../../src/timing/timer.ts'

const day = 86_400_000

afterEach(() => {
  jest.useRealTimers()
})

describe('a delay', () => {
  test('is never longer than a timer allows, and never negative', () => {
    expect([-1, 0, 1, 2 ** 31 - 1, 2 ** 31, Number.POSITIVE_INFINITY, Number.NaN].map(timerDelay)).toEqual([
      0,
      0,
      1,
      2 ** 31 - 1,
      2 ** 31 - 1,
      2 ** 31 - 1,
      0,
    ])
  })

  test('of 600 hours does not fire at once', async () => {
    jest.useFakeTimers()
    let ended = false
    const stop = new AbortController()
    const waiting = pause(600 * 3_600_000, stop.signal).then(() => {
      ended = true
    })
    jest.advanceTimersByTime(1_000)
    await Promise.resolve()
    expect(ended).toBe(false)
    stop.abort()
    await waiting
  })

  test('that was aborted before it started resolves at once', async () => {
    await pause(day, AbortSignal.abort())
    await pause(0)
  })
})
