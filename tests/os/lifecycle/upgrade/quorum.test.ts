import { expect, test } from 'bun:test'
import { judge } from '../../../../src/os/lifecycle/upgrade/quorum.ts'

const members = (...well: boolean[]) => well.map((each, index) => ({ name: `cp-${index + 2}`, well: each }))

test('the only member goes down with a word about it', () => {
  expect(judge([], true)).toMatchObject({ holds: true, text: expect.stringContaining('no other voting member') })
})

test('of three, both others must be well', () => {
  expect(judge(members(true, true), true).holds).toBe(true)
  const one = judge(members(true, false), true)
  expect(one.holds).toBe(false)
  expect(one.text).toBe('1 of 3 voting members of etcd are well without this node, 2 are needed; not well: cp-3')
})

test('of two, none may go', () => {
  expect(judge(members(true), true).holds).toBe(false)
})

test('of five, one more may be ill', () => {
  expect(judge(members(true, true, true, false), true).holds).toBe(true)
  expect(judge(members(true, true, false, false), true).holds).toBe(false)
})

test('a learner is not missed', () => {
  expect(judge(members(true, true), false).holds).toBe(true)
})
