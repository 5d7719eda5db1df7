import { describe, expect, test } from 'bun:test'
import { check, integer, property } from 'fast-check'
import { formatDuration, milliseconds, parseDuration } from '../../src/wire/duration.ts'

describe('a duration', () => {
  test.each([
    ['0', 0],
    ['0s', 0],
    ['1h30m', 5400e9],
    ['1m0.5s', 60.5e9],
    ['.5s', 0.5e9],
    ['1.s', 1e9],
    ['-1m', -60e9],
    ['+20ms', 20e6],
    ['7us', 7000],
    ['7µs', 7000],
    ['1ns', 1],
  ])('%s is %d ns', (text, nanoseconds) => {
    expect(parseDuration(text)).toBe(nanoseconds)
  })

  test.each(['', '-', '1', '1x', 's', '1h 2m', ' 1s', '1s ', '--1s', '.s', '1d', `${'1'.repeat(70)}s`])('%p is malformed', (text) => {
    expect(parseDuration(text)).toBeUndefined()
  })

  test('is printed as Go prints it', () => {
    expect([0, 1, 1500, 20e6, 1.5e9, 65e9, 3605e9, -90e9, 86_400e9].map(formatDuration)).toEqual([
      '0s',
      '1ns',
      '1.5µs',
      '20ms',
      '1.5s',
      '1m5s',
      '1h0m5s',
      '-1m30s',
      '24h0m0s',
    ])
  })

  test('survives printing and parsing', () => {
    check(
      property(integer({ min: -1e15, max: 1e15 }), (nanoseconds) => {
        expect(parseDuration(formatDuration(nanoseconds))).toBe(nanoseconds)
      }),
    )
  })

  test('that is absent has no milliseconds', () => {
    expect([undefined, '1.5s', 'never'].map(milliseconds)).toEqual([0, 1500, 0])
  })
})
