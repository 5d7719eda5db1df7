import { expect, test } from 'bun:test'
import { parseSchedule } from '../../src/document/cron.ts'

const at = (text: string, ...after: string[]) => after.map((one) => parseSchedule(text)?.next(new Date(one)).toISOString())

test('fields of crontab are in UTC', () => {
  expect(at('0 */6 * * *', '2026-01-01T00:00:00Z', '2026-01-01T17:59:59Z', '2026-12-31T18:00:01Z')).toEqual([
    '2026-01-01T06:00:00.000Z',
    '2026-01-01T18:00:00.000Z',
    '2027-01-01T00:00:00.000Z',
  ])
  expect(at('15,45 8-10/2 * * 1-5', '2026-01-02T10:45:00Z')).toEqual(['2026-01-05T08:15:00.000Z'])
  expect(at('0 3 * * 7', '2026-01-01T00:00:00Z')).toEqual(['2026-01-04T03:00:00.000Z'])
  expect(at('5/20 * * * *', '2026-01-01T00:06:00Z')).toEqual(['2026-01-01T00:25:00.000Z'])
})

test('a day matches by either of both fields where both are restricted', () => {
  expect(at('0 0 13 * 5', '2026-01-01T00:00:00Z', '2026-01-09T00:00:00Z')).toEqual(['2026-01-02T00:00:00.000Z', '2026-01-13T00:00:00.000Z'])
})

test('a leap day may be years away', () => {
  expect(at('0 0 29 2 *', '2096-03-01T00:00:00Z')).toEqual(['2104-02-29T00:00:00.000Z'])
})

test('names and intervals', () => {
  expect(at('@daily', '2026-01-01T05:00:00Z')).toEqual(['2026-01-02T00:00:00.000Z'])
  expect(at('@every 90m', '2026-01-01T05:00:00Z')).toEqual(['2026-01-01T06:30:00.000Z'])
})

test('what is no schedule, or never comes, is none', () => {
  for (const text of [
    '',
    '* * * *',
    '* * * * * *',
    '60 * * * *',
    '* 24 * * *',
    '* * 0 * *',
    '* * * 13 *',
    '* * * * 8',
    '5-1 * * * *',
    '*/0 * * * *',
    'a * * * *',
    '@every',
    '@every 30s',
    '@every 1h 2h',
    '@often',
    '0 0 31 2 *',
    '-1 * * * *',
  ])
    expect(parseSchedule(text), text).toBeUndefined()
})
