import { expect, test } from 'bun:test'
import { formatNetworks } from '../../../../../src/programs/talosctl/cluster/host/cidr.ts'
import { type NetworkFlags, networksOfFlags } from '../../../../../src/programs/talosctl/cluster/host/network-flags.ts'

const usual = { name: 'demo', state: '/state', provisioner: 'container', defaultCidr: '10.5.0.0/24', ipv4: true }
const networks = (flags: Partial<NetworkFlags>) => formatNetworks(networksOfFlags({ ...usual, ...flags }))
const own = /^fd[0-9a-f]{2}:[0-9a-f:]+::\/64$/

test('nodes have IPv4, and IPv6 beside it or instead on request', () => {
  expect(networks({})).toBe('10.5.0.0/24')
  const [first = '', second = ''] = networks({ ipv6: true }).split(',')
  expect([first, own.test(second)]).toEqual(['10.5.0.0/24', true])
  expect(networks({ ipv6: true, subnet: '10.9.0.0/24' })).toBe(`10.9.0.0/24,${second}`)
  expect(networks({ ipv6: true, ipv4: false })).toBe(second)
  expect(networks({ ipv6: true, name: 'other' })).not.toContain(second)
})

test('networks that are named say which families there are', () => {
  expect(networks({ subnet: 'fd00:5::/64' })).toBe('fd00:5::/64')
  expect(networks({ subnet: 'fd00:5::/64,10.5.0.0/24', ipv6: true })).toBe('fd00:5::/64,10.5.0.0/24')
  expect(networks({ subnet: 'fd00:5::/64', ipv4: false })).toBe('fd00:5::/64')
})

test.each([
  [{ ipv4: false }, '--ipv4=false: nodes need an address: add --ipv6'],
  [{ ipv4: false, subnet: '10.5.0.0/24' }, '--cidr "10.5.0.0/24": it names an IPv4 network, which --ipv4=false excludes'],
  [{ ipv6: true, provisioner: 'qemu' }, '--ipv6: virtual machines of a cluster get their addresses by DHCP, which is IPv4: leave it out'],
] as [Partial<NetworkFlags>, string][])('%j is refused with the way out', (flags, message) => {
  expect(() => networks(flags)).toThrow(message)
})
