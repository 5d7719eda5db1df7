import { expect, test } from 'bun:test'
import { differences, type Measured } from '../../../../src/os/lifecycle/measurements/compare.ts'

const event = (subject: string, digest: string, detail?: string, type = 'EV_IPL') => ({
  type,
  subject,
  digest: digest.repeat(64),
  ...(detail !== undefined && { detail }),
})
const measured = (events: Measured['events'], value = 'v', explained = true): Measured => ({ value, explained, events })
const start = measured([event('a', '1', 'one'), event('b', '2'), event('c', '3')])

test('the same events are no difference, whatever the phase of the start', () => {
  expect(differences(start, measured([...start.events, event('enter-machined', '9', undefined, 'phase')], 'w'))).toEqual([])
})

test('an event with another digest is changed: shown by what is known of it, otherwise by its digest', () => {
  expect(differences(start, measured([event('a', '4', 'two'), event('b', '5'), event('c', '3')], 'w'))).toEqual([
    { kind: 'changed', type: 'EV_IPL', subject: 'a', before: 'one', after: 'two' },
    { kind: 'changed', type: 'EV_IPL', subject: 'b', before: `${'2'.repeat(16)}…`, after: `${'5'.repeat(16)}…` },
  ])
  expect(differences(start, measured([event('a', '4', 'one'), ...start.events.slice(1)]))).toEqual([
    { kind: 'changed', type: 'EV_IPL', subject: 'a', before: `${'1'.repeat(16)}…`, after: `${'4'.repeat(16)}…` },
  ])
})

test('events of one kind with different names are one for another; others are added or removed', () => {
  expect(differences(start, measured([event('x', '7', 'new'), ...start.events.slice(1)]))).toEqual([
    { kind: 'changed', type: 'EV_IPL', before: 'a one', after: 'x new' },
  ])
  expect(differences(start, measured([...start.events, event('d', '6')]))).toEqual([
    { kind: 'added', type: 'EV_IPL', subject: 'd', after: `${'6'.repeat(16)}…` },
  ])
  expect(differences(start, measured(start.events.slice(0, 2)))).toEqual([
    { kind: 'removed', type: 'EV_IPL', subject: 'c', before: `${'3'.repeat(16)}…` },
  ])
  expect(differences(undefined, start)).toHaveLength(3)
  expect(differences(start, undefined).map(({ kind }) => kind)).toEqual(['removed', 'removed', 'removed'])
})

test('another order, and what is in no log', () => {
  expect(differences(start, measured([...start.events].reverse(), 'w'))).toEqual([{ kind: 'order' }])
  expect(differences(start, measured(start.events, 'w', false))).toEqual([{ kind: 'unlogged' }])
  expect(differences(measured(start.events, 'w', false), measured(start.events, 'w', false))).toEqual([])
})

test('a long log takes linear time', () => {
  const many = (digest: string) => Array.from({ length: 4096 }, (_, at) => event(`${at}`, digest))
  const before = performance.now()
  expect(differences(measured(many('1')), measured(many('2').reverse()))).toHaveLength(4096)
  expect(performance.now() - before).toBeLessThan(2000)
})
