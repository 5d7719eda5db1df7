import { expect, test } from 'bun:test'
import { inRange, VersionRangeError } from '../../../../src/programs/talosctl/extension/version-range.ts'

test.each<[version: string, range: string, holds: boolean]>([
  ['v1.13.100', '', true],
  ['v1.13.100', '>= v1.13.0', true],
  ['v1.13.100', '>=1.13.0 <1.14.0', true],
  ['v1.14.0', '>=1.13.0 <1.14.0', false],
  ['v1.14.0-alpha.1', '>=1.14.0', true],
  ['v1.12.9', '1.12.x || 1.13.x', true],
  ['v1.13.0', '1.12.x || 1.13.x', true],
  ['v1.14.0', '1.12.x || 1.13.x', false],
  ['v2.3.4', '2.x', true],
  ['v1.9.9', '>1.x', false],
  ['v2.0.0', '>1.x', true],
  ['v1.12.9', '<1.13.x', true],
  ['v1.13.0', '!1.13.0', false],
  ['v1.13.1', '!= 1.13.0', true],
  ['v1.13.0', '==1.13.0', true],
  ['v1.13.0', '> 1.13.0-beta.1', true],
])('%s in "%s": %p', (version, range, holds) => {
  expect(inRange(version, range)).toBe(holds)
})

test.each(['foo', '>= 1.13', '>=1.13.0 ||', '~1.13.0', '1'.repeat(2000)])('"%s" is no range', (range) => {
  expect(() => inRange('v1.13.0', range)).toThrow(VersionRangeError)
})

test('a bad condition is found behind one that decides', () => {
  expect(() => inRange('v1.13.0', '>=1.0.0 || foo')).toThrow('"foo" is no condition')
})
