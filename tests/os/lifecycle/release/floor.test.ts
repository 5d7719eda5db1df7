import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isOlder } from '../../../../src/os/lifecycle/release/floor.ts'

test('versions are compared numerically, not as strings', () => {
  expect(isOlder('v1.13.99', 'v1.13.100')).toBe(true)
  expect(isOlder('v1.9.0', 'v1.13.0')).toBe(true)
  expect(isOlder('v1.13.100', 'v1.13.100')).toBe(false)
  expect(isOlder('v1.13.100-3-gabcdef', 'v1.13.100')).toBe(false)
  expect(isOlder('v2.0.0', 'v1.99.99')).toBe(false)
  expect(isOlder('nonsense', 'v1.13.0')).toBe(true)
})

test('of two versions at most one is older', () => {
  const version = fc.tuple(fc.nat(3), fc.nat(3), fc.nat(3)).map((numbers) => `v${numbers.join('.')}`)
  fc.assert(
    fc.property(version, version, (one, other) => {
      expect(Number(isOlder(one, other)) + Number(isOlder(other, one))).toBe(one === other ? 0 : 1)
    }),
  )
})
