import { expect, test } from 'bun:test'
import { DecodeError } from '../../src/wire/decode-error.ts'
import { containsAddress, nthAddress, parsePrefix, selects, tryPrefix } from '../../src/wire/prefix.ts'

test.each([
  ['10.0.0.0/8', '10.255.0.1', true],
  ['10.0.0.0/8', '11.0.0.1', false],
  ['10.5.0.128/25', '10.5.0.127/24', false],
  ['10.5.0.128/25', '10.5.0.200/24', true],
  ['0.0.0.0/0', '1.2.3.4', true],
  ['0.0.0.0/0', 'fd00::1', false],
  ['fd00::/7', 'fdab::1/64', true],
  ['192.168.1.1', '192.168.1.1', true],
  ['192.168.1.1', '192.168.1.2', false],
])('%s holds %s: %p', (network, address, holds) => {
  expect(containsAddress(parsePrefix(network), address)).toBe(holds)
})

test('addresses of a network are counted from its own', () => {
  expect(nthAddress(parsePrefix('10.96.0.0/12'), 10)).toBe('10.96.0.10')
  expect(nthAddress(parsePrefix('10.96.3.4/12'), 256)).toBe('10.96.1.0')
  expect(nthAddress(parsePrefix('fd00:1::/108'), 10)).toBe('fd00:1::a')
  expect(() => nthAddress(parsePrefix('10.0.0.0/30'), 4)).toThrow(DecodeError)
})

test.each(['', '10.0.0.0/33', '10.0.0/8', 'x', '10.0.0.0/', '10.0.0.0/-1', 'fd00::/129'])('%p is refused', (text) => {
  expect(() => parsePrefix(text)).toThrow(DecodeError)
})

test('subnets with ! exclude, in any position', () => {
  expect(selects([], '10.0.0.1')).toBe(true)
  expect(selects(['10.0.0.0/8'], '192.168.0.1')).toBe(false)
  expect(selects(['!10.0.0.0/8'], '192.168.0.1')).toBe(true)
  expect(selects(['10.0.0.0/8', '!10.1.0.0/16'], '10.1.0.1')).toBe(false)
  expect(selects(['!10.1.0.0/16', '10.0.0.0/8'], '10.2.0.1')).toBe(true)
})

test('a prefix has an address and a length that fits it', () => {
  expect(tryPrefix('10.0.0.0/8')).toEqual({ bytes: Uint8Array.of(10, 0, 0, 0), bits: 8 })
  for (const text of ['10.0.0.0', '10.0.0.0/33', '10.0.0.0/08', '::/129', '/8', '10.0.0.0/']) expect(tryPrefix(text)).toBeUndefined()
})
