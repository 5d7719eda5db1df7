import { expect, test } from 'bun:test'
import { hostResolvers, parseResolvConf } from '../../../../../src/programs/talosctl/cluster/host/resolvers.ts'

test('only resolvers count, whatever else the file contains', () => {
  const text =
    '# made by x\nsearch example.org\nnameserver 192.0.2.1\n nameserver\t192.0.2.2\nnameserver fe80::1\nnameserver nonsense\noptions edns0\n'
  expect(parseResolvConf(text)).toEqual({ routable: ['192.0.2.1', '192.0.2.2'], loopback: [] })
})

test('nodes ask the host themselves when it has only a resolver of its own', () => {
  expect(hostResolvers({ text: 'nameserver 127.0.0.53\n' })).toEqual({ nameservers: [], forwardDns: ['127.0.0.53'] })
  expect(hostResolvers({ text: 'nameserver 127.0.0.53\nnameserver 192.0.2.1\n' })).toEqual({ nameservers: ['192.0.2.1'], forwardDns: [] })
  expect(hostResolvers({ text: '' })).toEqual({ nameservers: [], forwardDns: [] })
})
