import { expect, test } from 'bun:test'
import { matchesRule, parseMatchRule } from '../../../src/wire/dbus/match-rule.ts'

const signal = { type: 'signal', serial: 1, sender: 'a.b', interface: 'a.b.C', member: 'D', path: '/a' } as const

test.each([
  ['', true],
  ["type='signal'", true],
  ["type='signal',sender='a.b',interface='a.b.C',member='D',path='/a'", true],
  ["type='signal',interface='a.b.C',member='E'", false],
  ["path='/a/b'", false],
  ["type='method_call'", false],
  ["member='D',arg0='x'", true],
])('the rule %p selects: %p', (rule, selected) => {
  expect(matchesRule(parseMatchRule(rule), signal)).toBe(selected)
})
