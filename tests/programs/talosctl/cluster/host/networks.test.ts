import { expect, test } from 'bun:test'
import { parseCidr } from '../../../../../src/programs/talosctl/cluster/host/cidr.ts'
import { clash, freeNetwork } from '../../../../../src/programs/talosctl/cluster/host/networks.ts'

const used = (...networks: string[]) => networks.map((network, i) => ({ link: `eth${i}`, cidr: parseCidr(network) }))

test('a clash names who is there first', () => {
  expect(clash(parseCidr('10.5.0.0/24'), used('192.168.0.0/16', '10.0.0.0/8'))?.link).toBe('eth1')
  expect(clash(parseCidr('10.5.0.0/24'), used('10.6.0.0/24'))).toBeUndefined()
})

test('the proposal is free, and is neither the pods nor the services', () => {
  expect(freeNetwork(used('10.5.0.0/24', '10.6.0.0/24'))).toBe('10.7.0.0/24')
  const all = Array.from({ length: 251 }, (_, i) => `10.${i + 5}.0.0/24`).filter((network) => !/^10\.(96|244)\./.test(network))
  expect(freeNetwork(used(...all))).toBeUndefined()
})
