import { expect, test } from 'bun:test'
import { rulesFor } from '../../../../../src/programs/talosctl/cluster/host/filter.ts'

test('a bridge may talk to the host and past it, and nothing else is opened', () => {
  const rules = rulesFor('ichor0badcafe')
  expect(rules.every((rule) => rule.includes('ichor0badcafe') && rule.at(-1) === 'ACCEPT')).toBe(true)
  expect(rules.map(([chain, direction]) => `${chain} ${direction}`)).toEqual(['INPUT -i', 'FORWARD -i', 'FORWARD -o'])
})
