import { expect, test } from 'bun:test'
import { DecodeError } from '../../src/wire/decode-error.ts'
import { parseIp } from '../../src/wire/ip.ts'
import {
  containsAddress,
  familyOf,
  formatPrefix,
  hostPrefix,
  masked,
  maskLength,
  nthAddress,
  overlaps,
  parsePrefix,
  selects,
  tryPrefix,
} from '../../src/wire/prefix.ts'

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

test.each([
  ['10.5.0.0/24', '10.5.0.128/25', true],
  ['10.5.0.0/24', '10.5.1.0/24', false],
  ['10.0.0.0/8', '10.5.1.0/24', true],
  ['10.0.0.0/8', 'fd00::/8', false],
])('%s and %s share addresses: %p', (a, b, expected) => {
  expect(overlaps(parsePrefix(a), parsePrefix(b))).toBe(expected)
  expect(overlaps(parsePrefix(b), parsePrefix(a))).toBe(expected)
})

test.each([
  ['192.0.2.77/26', '192.0.2.64/26'],
  ['192.168.200.255/0', '0.0.0.0/0'],
  ['fd00::1:2:3:4/72', 'fd00::/72'],
  ['10.0.0.7/32', '10.0.0.7/32'],
])('%s is in the network %s', (address, network) => {
  expect(formatPrefix(masked(parsePrefix(address)))).toBe(network)
})

test.each([
  ['255.255.240.0', 20],
  ['0.0.0.0', 0],
  ['255.255.255.255', 32],
  ['255.0.255.0', undefined],
  ['ffff:ffff:ffff:fe00::', 55],
])('the length of the mask %s is %p', (mask, length) => {
  expect(maskLength(parseIp(mask)!)).toBe(length!)
})

test('an address has a family and is a network of its own', () => {
  expect(['10.0.0.1', 'fd00::1/64'].map((text) => [familyOf(text), hostPrefix(text)])).toEqual([
    ['inet4', '10.0.0.1/32'],
    ['inet6', 'fd00::1/128'],
  ])
})
