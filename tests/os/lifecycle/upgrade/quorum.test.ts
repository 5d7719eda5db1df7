import { expect, test } from 'bun:test'
import { judge } from '../../../../src/os/lifecycle/upgrade/quorum.ts'

const members = (...healthy: boolean[]) => healthy.map((each, index) => ({ name: `cp-${index + 2}`, healthy: each }))

test('the only member may go down, with a note', () => {
  expect(judge([], true, 'away')).toMatchObject({ holds: true, text: expect.stringContaining('no other voting member') })
})

test('of three, both others must be healthy', () => {
  expect(judge(members(true, true), true, 'away').holds).toBe(true)
  const one = judge(members(true, false), true, 'away')
  expect(one.holds).toBe(false)
  expect(one.text).toBe('1 of 3 voting members of etcd are healthy without this node, 2 are needed; unhealthy: cp-3')
})

test('of two, none may go offline, but one may leave if the other is healthy', () => {
  expect(judge(members(true), true, 'away').holds).toBe(false)
  expect(judge(members(true), true, 'leaving').holds).toBe(true)
  expect(judge(members(false), true, 'leaving').holds).toBe(false)
})

test('of three, one may leave while both others are healthy: two that stay need each other', () => {
  expect(judge(members(true, true), true, 'leaving').holds).toBe(true)
  expect(judge(members(true, false), true, 'leaving')).toEqual({
    holds: false,
    text: '1 of 2 voting members of etcd are healthy without this node, 2 are needed; unhealthy: cp-3',
  })
})

test('of five, one more may be unhealthy', () => {
  expect(judge(members(true, true, true, false), true, 'away').holds).toBe(true)
  expect(judge(members(true, true, false, false), true, 'away').holds).toBe(false)
})

test('a learner does not count', () => {
  expect(judge(members(true, true), false, 'away').holds).toBe(true)
})
