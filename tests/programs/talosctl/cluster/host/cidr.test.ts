import { expect, test } from 'bun:test'
import { formatNetworks, parseCidr, parseNetworks, sizeOf } from '../../../../../src/programs/talosctl/cluster/host/cidr.ts'
import { formatPrefix } from '../../../../../src/wire/prefix.ts'

test('a network has its form and size', () => {
  const cidr = parseCidr('10.5.0.0/22')
  expect([sizeOf(cidr), formatPrefix(cidr)]).toEqual([1024, '10.5.0.0/22'])
})

test.each([
  ['10.5.0.0', '--cidr "10.5.0.0": write a network such as 10.5.0.0/24'],
  ['10.5.0.0/24/1', '--cidr "10.5.0.0/24/1": write a network such as 10.5.0.0/24'],
  ['10.5.0/24', '--cidr "10.5.0/24": write a network such as 10.5.0.0/24'],
  ['fd00::/16', '--cidr "fd00::/16": the prefix length must lie between 48 and 120'],
  ['fd00::1/64', '--cidr "fd00::1/64": the address is not the network\'s first: write fd00::/64'],
  ['10.5.0.0/31', '--cidr "10.5.0.0/31": the prefix length must lie between 8 and 29'],
  ['10.5.0.7/24', '--cidr "10.5.0.7/24": the address is not the network\'s first: write 10.5.0.0/24'],
])('%s is refused with the way out', (text, message) => {
  expect(() => parseCidr(text)).toThrow(message)
})

test('a cluster has one network, or one of each family', () => {
  expect(formatNetworks(parseNetworks('fd00:5::/64, 10.5.0.0/24'))).toBe('fd00:5::/64,10.5.0.0/24')
  expect(sizeOf(parseNetworks('fd00:5::/120').first)).toBe(256)
  for (const text of ['10.5.0.0/24,10.6.0.0/24', 'fd00:5::/64,10.5.0.0/24,fd00:6::/64', '10.5.0.0/24,'])
    expect(() => parseNetworks(text)).toThrow('--cidr')
})
