import { describe, expect, test } from 'bun:test'
import { createLogger, formatEntry, type LogEntry } from '../../src/cosi/log.ts'
import { takeUnexpected } from '../../src/cosi/unexpected.ts'

function taking() {
  const entries: LogEntry[] = []
  const given: string[] = []
  const time = { elapsed: 0 }
  const take = takeUnexpected({
    log: createLogger((entry) => entries.push(entry)),
    giveUp: (what, error) => given.push(`${what}: ${(error as Error).message}`),
    clock: { elapsed: () => time.elapsed },
  })
  return { entries, given, time, take }
}

describe('an unhandled error', () => {
  test('is logged with its stack, and the process continues', () => {
    const { entries, given, take } = taking()
    take('uncaught exception', new Error('broken'))
    expect(formatEntry(entries[0]!)).toStartWith('error: unexpected error kind="uncaught exception" error=broken stack=')
    expect(given).toEqual([])
  })

  test('once in a while does not end the process', () => {
    const { entries, given, time, take } = taking()
    for (let i = 0; i < 1000; i++) {
      time.elapsed += 1000
      take('unhandled rejection', new Error('broken'))
    }
    expect(entries).toHaveLength(1000)
    expect(given).toEqual([])
  })

  test('in a tight loop ends the process', () => {
    const { given, take } = taking()
    for (let i = 0; i < 101; i++) take('unhandled rejection', new Error('broken'))
    expect(given).toEqual(['unhandled rejection: broken'])
  })
})

test('a log line can be formatted from any value of a field', () => {
  const circle: Record<string, unknown> = {}
  circle.self = circle
  const entry = (fields: Record<string, unknown>): LogEntry => ({ time: new Date(), level: 'info', message: 'm', fields })
  expect(formatEntry(entry({ circle, big: 5n }))).toBe('m circle=[object Object] big=[object BigInt]')
})
