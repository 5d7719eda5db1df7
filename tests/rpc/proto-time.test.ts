import { expect, test } from 'bun:test'
import { toDuration, toMilliseconds, toTimestamp } from '../../src/rpc/proto-time.ts'

test('a timestamp has nanoseconds from its second on, before 1970 too', () => {
  expect(toTimestamp(new Date(1500))).toEqual({ seconds: 1, nanos: 5e8 })
  expect(toTimestamp(new Date(-1))).toEqual({ seconds: -1, nanos: 999_000_000 })
})

test('both fields of a negative duration are negative', () => {
  expect(toDuration(90_250)).toEqual({ seconds: 90, nanos: 25e7 })
  expect(toDuration(-1500)).toEqual({ seconds: -1, nanos: -5e8 })
  expect(toDuration(0.5)).toEqual({ seconds: 0, nanos: 500_000 })
})

test.each([0, 1, 1500, -1, -1500, 1_700_000_000_123])('%d ms survive the way there and back', (milliseconds) => {
  expect(toMilliseconds(toDuration(milliseconds))).toBe(milliseconds)
  expect(toMilliseconds(toTimestamp(new Date(milliseconds)))).toBe(milliseconds)
})
