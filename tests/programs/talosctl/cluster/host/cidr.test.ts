import { expect, test } from 'bun:test'
import {
  addressOf,
  contains,
  formatCidr,
  networkOf,
  overlap,
  parseCidr,
  sizeOf,
} from '../../../../../src/programs/talosctl/cluster/host/cidr.ts'

test('addresses are counted from the network on', () => {
  const cidr = parseCidr('10.5.0.0/22')
  expect([addressOf(cidr, 1), addressOf(cidr, 2), addressOf(cidr, 256), addressOf(cidr, 1023)]).toEqual([
    '10.5.0.1',
    '10.5.0.2',
    '10.5.1.0',
    '10.5.3.255',
  ])
  expect(sizeOf(cidr)).toBe(1024)
  expect(() => addressOf(cidr, 1024)).toThrow(RangeError)
  expect(formatCidr(cidr)).toBe('10.5.0.0/22')
})

test('addresses above the sign bit stay positive', () => {
  const cidr = parseCidr('192.168.200.0/24')
  expect(addressOf(cidr, 255)).toBe('192.168.200.255')
  expect(contains(cidr, '192.168.200.7')).toBe(true)
  expect(contains(cidr, '192.168.201.7')).toBe(false)
})

test.each([
  ['10.5.0.0/24', '10.5.0.128/25', true],
  ['10.5.0.0/24', '10.5.1.0/24', false],
  ['10.0.0.0/8', '10.5.1.0/24', true],
] as const)('%s and %s share addresses: %p', (a, b, expected) => {
  expect(overlap(parseCidr(a), parseCidr(b))).toBe(expected)
  expect(overlap(parseCidr(b), parseCidr(a))).toBe(expected)
})

test('the network of an interface is that of its address', () => {
  expect(formatCidr(networkOf('192.0.2.77', 26))).toBe('192.0.2.64/26')
})

test.each([
  ['10.5.0.0', '--cidr "10.5.0.0": write a network such as 10.5.0.0/24'],
  ['10.5.0.0/24/1', '--cidr "10.5.0.0/24/1": write a network such as 10.5.0.0/24'],
  ['10.5.0/24', '--cidr "10.5.0/24": write a network such as 10.5.0.0/24'],
  ['fd00::/64', '--cidr "fd00::/64": container clusters use an IPv4 network, such as 10.5.0.0/24'],
  ['10.5.0.0/31', '--cidr "10.5.0.0/31": the prefix length must lie between 8 and 29'],
  ['10.5.0.7/24', '--cidr "10.5.0.7/24": the address is not the network\'s first: write 10.5.0.0/24'],
])('%s is refused with the way out', (text, message) => {
  expect(() => parseCidr(text)).toThrow(message)
})
