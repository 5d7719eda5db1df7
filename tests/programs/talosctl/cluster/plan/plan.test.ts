import { expect, test } from 'bun:test'
import { macOf } from '../../../../../src/programs/node-supervisor/node-address.ts'
import { parseNetworks } from '../../../../../src/programs/talosctl/cluster/host/cidr.ts'
import { linkName, planChange, planCluster } from '../../../../../src/programs/talosctl/cluster/plan/plan.ts'
import { gib, request, role } from './request.ts'

const ports = { kubernetes: 40001, machineApi: 40002 }

test('the gateway is the first address, control planes come next, workers after them', () => {
  const cluster = planCluster(request({ controlplanes: role(3), workers: role(2) }), ports)
  expect(cluster.network.gateway).toBe('10.5.0.1')
  expect(cluster.nodes.map(({ name, ip }) => [name, ip])).toEqual([
    ['demo-controlplane-1', '10.5.0.2'],
    ['demo-controlplane-2', '10.5.0.3'],
    ['demo-controlplane-3', '10.5.0.4'],
    ['demo-worker-1', '10.5.0.5'],
    ['demo-worker-2', '10.5.0.6'],
  ])
})

test('ports are exposed on the first control plane alone', () => {
  const cluster = planCluster(request({ controlplanes: role(2) }), ports)
  expect(cluster.nodes.map((node) => node.ports.length)).toEqual([1, 0, 0])
})

test('a host whose resolver is its own loopback answers for its nodes on the gateway', () => {
  expect(planCluster(request({ forwardDns: ['127.0.0.53'] }), ports).network.nameservers).toEqual(['10.5.0.1'])
  expect(planCluster(request(), ports).network.nameservers).toEqual(['192.0.2.53'])
})

test('more nodes take free names and addresses, fewer give up the last ones', () => {
  const cluster = planCluster(request({ workers: role(3) }), ports)
  const without = { ...cluster, nodes: cluster.nodes.filter(({ name }) => name !== 'demo-worker-2') }
  expect(planChange(without, request({ workers: role(3) })).added.map(({ name, ip }) => [name, ip])).toEqual([
    ['demo-worker-2', '10.5.0.4'],
  ])
  const { added, removed } = planChange(cluster, request({ workers: role(1) }))
  expect(added).toEqual([])
  expect(removed.map(({ name }) => name)).toEqual(['demo-worker-2', 'demo-worker-3'])
})

test('nodes that are added have addresses of the network the cluster has', () => {
  const cluster = planCluster(request({ networks: parseNetworks('10.9.0.0/24') }), ports)
  expect(planChange(cluster, request({ workers: role(2) })).added.map(({ ip }) => ip)).toEqual(['10.9.0.4'])
})

test('nodes of two families have an address of each, the same for the order of both', () => {
  const cluster = planCluster(request({ networks: parseNetworks('10.9.0.0/24,fd00:9::/64') }), ports)
  expect(cluster.network).toMatchObject({ cidr: '10.9.0.0/24', gateway: '10.9.0.1', second: { cidr: 'fd00:9::/64', gateway: 'fd00:9::1' } })
  expect(cluster.nodes.map(({ ip, secondIp }) => [ip, secondIp])).toEqual([
    ['10.9.0.2', 'fd00:9::2'],
    ['10.9.0.3', 'fd00:9::3'],
  ])
  const other = planCluster(request({ networks: parseNetworks('fd00:9::/64') }), ports)
  expect(other.nodes.map(({ ip, secondIp }) => [ip, secondIp])).toEqual([
    ['fd00:9::2', undefined],
    ['fd00:9::3', undefined],
  ])
})

test('links fit the kernel and differ between clusters of the same name in other folders', () => {
  const a = planCluster(request(), ports)
  const b = planCluster(request({ state: '/elsewhere' }), ports)
  const links = [a, b].flatMap((cluster) => [cluster.network.bridge, ...cluster.nodes.map(({ link }) => link)])
  expect(new Set(links).size).toBe(links.length)
  expect(links.every((link) => /^[a-z0-9]{1,15}$/.test(link))).toBe(true)
  expect(linkName('0123abcd', 'n')).toBe(linkName('0123abcd', 'n'))
})

test('a node keeps its hardware address', () => {
  expect(macOf('10.5.0.17')).toBe('02:1c:0a:05:00:11')
})

test.each([
  [{ name: 'Demo' }, '--name "Demo": use up to 40 small letters, digits and dashes, starting with a letter'],
  [{ name: '../x' }, '--name "../x": use up to 40 small letters, digits and dashes, starting with a letter'],
  [{ controlplanes: role(0) }, '--controlplanes: a cluster needs at least one control plane'],
  [{ controlplanes: { count: 1, cpus: 1, memory: gib } }, '--memory: a control plane needs at least 2GiB'],
  [{ workers: { count: 1, cpus: 1, memory: gib / 2 } }, '--memory-workers: a worker needs at least 1GiB'],
  [
    { networks: parseNetworks('10.5.0.0/29'), workers: role(9) },
    'network 10.5.0.0/29 has no address left: ask for fewer nodes, or create the cluster with a larger --cidr',
  ],
] as const)('%#: a bad request is refused with the way out', (change, message) => {
  expect(() => planCluster(request(change), ports)).toThrow(message)
})
