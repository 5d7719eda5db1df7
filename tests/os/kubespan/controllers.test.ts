import { expect, test } from 'bun:test'
import { makeClock } from '../../../src/cosi/clock.ts'
import { createLogger, type LogEntry } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { VolumeStatus } from '../../../src/os/block/resources/volume-status.ts'
import { configLocalAffiliate } from '../../../src/os/cluster/controllers/affiliate.ts'
import { Affiliate } from '../../../src/os/cluster/resources/affiliate.ts'
import { DiscoveryConfig } from '../../../src/os/cluster/resources/discovery-config.ts'
import { Identity } from '../../../src/os/cluster/resources/identity.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { MachineType } from '../../../src/os/config/resources/machine-type.ts'
import { NodeStatus } from '../../../src/os/k8s/resources/node.ts'
import { Nodename } from '../../../src/os/k8s/resources/nodename.ts'
import type { Kernel } from '../../../src/os/kernel.ts'
import { kubespan } from '../../../src/os/kubespan/kubespan.ts'
import { KubeSpanConfig } from '../../../src/os/kubespan/resources/kube-span-config.ts'
import { KubeSpanEndpoint } from '../../../src/os/kubespan/resources/kube-span-endpoint.ts'
import { KubeSpanIdentity } from '../../../src/os/kubespan/resources/kube-span-identity.ts'
import { KubeSpanPeerSpec, KubeSpanPeerStatus } from '../../../src/os/kubespan/resources/kube-span-peer.ts'
import { AddressSpec, AddressStatus } from '../../../src/os/network/resources/address.ts'
import { HardwareAddress } from '../../../src/os/network/resources/hardware-address.ts'
import { HostnameStatus } from '../../../src/os/network/resources/hostname.ts'
import { LinkSpec } from '../../../src/os/network/resources/link.ts'
import { NfTablesChain } from '../../../src/os/network/resources/nf-tables-chain.ts'
import { NodeAddress } from '../../../src/os/network/resources/node-address.ts'
import { RouteSpec } from '../../../src/os/network/resources/route.ts'
import { RoutingRuleSpec } from '../../../src/os/network/resources/routing-rule.ts'
import { Diagnostic } from '../../../src/os/runtime/resources/diagnostic.ts'

/** A machine whose kernel reports these peers, with a directory for STATE. */
function machine({ hasWireguard = true, folder = new Map<string, string>(), state = 'missing' as 'missing' | 'ready' } = {}) {
  const store = new Store()
  const entries: LogEntry[] = []
  let now = new Date('2026-01-01T00:00:00Z')
  const os = new Runtime(store, {
    log: createLogger((entry) => entries.push(entry)),
    clock: makeClock({ now: () => now, elapsed: () => now.getTime() }),
  })
  const peers: object[] = []
  const kernel = {
    mode: 'metal',
    files: {
      readTextIfThere: (path: string) => folder.get(path),
      writeAtomic: async (path: string, text: string) => void folder.set(path, text),
    },
    net: { openNetwork: () => ({ link: () => ({ kind: 'wireguard', index: 7 }), [Symbol.dispose]() {} }) },
    wireguard: { hasWireguard: () => hasWireguard, canRunInUserSpace: () => false, wireguardDevice: () => ({ peers }) },
  } as unknown as Kernel
  os.register(
    ...kubespan.parts!({ kernel } as never).controllers!,
    configLocalAffiliate({ version: { name: 'Ichor', tag: 'v1', sha: '', built: '', arch: '' } }),
  )
  os.start()
  store.put(HardwareAddress, 'first', { name: 'eth0', hardwareAddr: '02:00:00:00:00:01' })
  store.put(Identity, 'local', { nodeId: 'us' })
  store.put(VolumeStatus, 'STATE', { phase: state, type: 'partition' })
  return { store, os, entries, folder, peers, at: (time: Date) => (now = time) }
}

const head = 'version: v1alpha1\nmachine: {type: worker}\ncluster: {id: abc, secret: c2VjcmV0, discovery: {enabled: true}}\n'
const mesh = (more = '') => `${head}---\napiVersion: v1alpha1\nkind: KubeSpanConfig\nenabled: true\n${more}`

const affiliate = (nodeId: string, more: object = {}, address = '10.0.0.5') => ({
  nodeId,
  addresses: [address],
  hostname: nodeId,
  nodename: nodeId,
  operatingSystem: 'Ichor',
  machineType: 'worker' as const,
  kubespan: {
    publicKey: `key of ${nodeId}`,
    address: 'fd00::5',
    additionalAddresses: ['10.244.5.0/24'],
    endpoints: [`${address}:51820`],
    excludeAdvertisedNetworks: [],
    ...more,
  },
})

test('key and address are generated once and kept; another cluster changes the address', async () => {
  const { store, os, folder } = machine()
  store.put(MachineConfig, 'v1alpha1', mesh())
  await os.settled()
  const first = store.get(KubeSpanIdentity, 'local')!.spec
  expect(first.address).toMatch(/^fd.*\/128$/)
  const again = machine({ folder })
  again.store.put(MachineConfig, 'v1alpha1', mesh().replace('id: abc', 'id: abd'))
  await again.os.settled()
  const second = again.store.get(KubeSpanIdentity, 'local')!.spec
  expect(second.publicKey).toBe(first.publicKey)
  expect(second.address).not.toBe(first.address)
  expect(second.subnet.endsWith('/64')).toBe(true)
})

test('no key is generated while STATE may contain one but is not mounted', async () => {
  const { store, os, folder } = machine({ state: 'ready' })
  store.put(MachineConfig, 'v1alpha1', mesh())
  await os.settled()
  expect([store.get(KubeSpanIdentity, 'local'), folder.size]).toEqual([undefined, 0])
})

test('both forms of the configuration are equivalent', async () => {
  const { store, os } = machine()
  store.put(
    MachineConfig,
    'v1alpha1',
    `${head.replace('{type: worker}', '{type: worker, network: {kubespan: {enabled: true, allowDownPeerBypass: true, mtu: 1380, filters: {endpoints: ["!10.0.0.0/8"]}}}}')}---\napiVersion: v1alpha1\nkind: KubeSpanEndpointsConfig\nextraAnnouncedEndpoints: ["192.0.2.1:51820"]\n`,
  )
  await os.settled()
  expect(store.get(KubeSpanConfig, 'kubespan')!.spec).toEqual({
    enabled: true,
    clusterId: 'abc',
    sharedSecret: 'c2VjcmV0',
    forceRouting: false,
    advertiseKubernetesNetworks: false,
    mtu: 1380,
    endpointFilters: ['!10.0.0.0/8'],
    harvestExtraEndpoints: false,
    extraEndpoints: ['192.0.2.1:51820'],
  })
})

test('a mesh without discovery fails with the missing settings', async () => {
  const { store, os, entries } = machine()
  store.put(MachineConfig, 'v1alpha1', mesh().replace('discovery: {enabled: true}', 'discovery: {enabled: false}'))
  await os.settled()
  expect(store.get(KubeSpanConfig, 'kubespan')).toBeUndefined()
  expect(entries.map(({ fields }) => fields.error)).toContain(
    'KubeSpan needs "cluster.discovery.enabled: true", "cluster.id" and "cluster.secret" in the configuration',
  )
})

test('no peer takes the whole pod network, whatever its name', async () => {
  const { store, os, entries } = machine()
  const small = 'network: {podSubnets: [10.244.0.0/16, 10.200.7.0/24, "fd00:10::/56"]}, id'
  store.put(MachineConfig, 'v1alpha1', mesh().replace('id', small))
  store.put(Affiliate, 'us', affiliate('us'))
  const greedy = ['10.244.0.0/16', '10.240.0.0/12', '10.0.0.0/8', 'fd00:10::/48', 'fd00:10::/56']
  const whole = ['10.200.7.0/24', '10.244.0.0/17']
  store.put(Affiliate, 'a', affiliate('a', { additionalAddresses: [...greedy, ...whole] }))
  await os.settled()
  expect(store.get(KubeSpanPeerSpec, 'key of a')?.spec.allowedIPs).toEqual(expect.arrayContaining(whole))
  const refused = entries.filter(({ message }) => message === 'peer advertises too wide a network').map(({ fields }) => fields.network)
  expect([...new Set(refused)]).toEqual(greedy)
  expect(store.get(KubeSpanPeerSpec, 'key of a')?.spec.allowedIPs).not.toContain('10.244.0.0/16')
})

test('peers are affiliates with a key; excluded networks and those of other peers are not routed to them', async () => {
  const { store, os, entries } = machine()
  store.put(MachineConfig, 'v1alpha1', mesh())
  store.put(Affiliate, 'us', affiliate('us'))
  store.put(Affiliate, 'a', affiliate('a', { excludeAdvertisedNetworks: ['10.244.5.128/25'] }))
  store.put(Affiliate, 'b', affiliate('b', { address: 'fd00::6', additionalAddresses: ['10.244.4.0/23'] }, '10.0.0.6'))
  store.put(Affiliate, 'c', { ...affiliate('c'), kubespan: undefined })
  await os.settled()
  const peers = store.list(KubeSpanPeerSpec).map(({ metadata, spec }) => [metadata.id, spec.allowedIPs])
  expect(peers).toEqual([
    ['key of a', ['10.0.0.5/32', '10.244.5.0/25', 'fd00::5/128']],
    ['key of b', ['10.0.0.6/32', '10.244.4.0/24', '10.244.5.128/25', 'fd00::6/128']],
  ])
  expect(entries.some(({ message }) => message === 'peers claim overlapping addresses')).toBe(true)
})

test("a node's own addresses precede advertised networks, and no node advertises half the Internet", async () => {
  const { store, os } = machine()
  store.put(MachineConfig, 'v1alpha1', mesh())
  const thief = affiliate('a')
  const victim = affiliate('b', { address: 'fd00::6' }, '10.0.0.6')
  const [address = ''] = victim.addresses
  thief.kubespan!.additionalAddresses = [`${address}/32`, '0.0.0.0/1', '::/0', '10.244.9.0/24']
  store.put(Affiliate, 'a', thief)
  store.put(Affiliate, 'b', victim)
  await os.settled()
  const allowed = (key: string) => store.get(KubeSpanPeerSpec, key)!.spec.allowedIPs
  expect(allowed('key of b')).toContain(`${address}/32`)
  expect(allowed('key of a')).toContain('10.244.9.0/24')
  expect(allowed('key of a').filter((network) => network === `${address}/32` || /\/[0-7]$/.test(network))).toEqual([])
})

test('link, address, routes, rules and marks are declared; peers that are down are bypassed if configured', async () => {
  const { store, os, peers, at } = machine()
  store.put(Affiliate, 'a', affiliate('a'))
  store.put(MachineConfig, 'v1alpha1', mesh())
  await os.settled()
  const settings = (type: any, id: string) => store.get<any>(type, id, { namespace: 'network-config' })?.spec
  expect(settings(LinkSpec, 'operator/kubespan')).toMatchObject({
    kind: 'wireguard',
    mtu: 1420,
    wireguard: {
      listenPort: 51820,
      firewallMark: 0x20,
      peers: [{ publicKey: 'key of a', presharedKey: 'c2VjcmV0', endpoint: '10.0.0.5:51820', persistentKeepaliveInterval: '25s' }],
    },
  })
  expect(store.list(AddressSpec, { namespace: 'network-config' }).map(({ spec }) => spec.address)).toEqual([
    expect.stringMatching(/^fd.*\/64$/),
  ])
  expect(settings(RouteSpec, 'operator/180/inet4')).toMatchObject({ dst: '', table: '180', outLinkName: 'kubespan' })
  expect(settings(RoutingRuleSpec, 'operator/inet6/32500')).toMatchObject({ table: '180', priority: 32500, fwMark: 0x40, fwMask: 0x60 })
  const targets = () => store.get(NfTablesChain, 'kubespan_outgoing')!.spec.rules.at(-1)?.matchDestinationAddress?.includeSubnets
  expect(targets()).toEqual(['10.0.0.5/32', '10.244.5.0/24', 'fd00::5/128'])
  expect(store.get(KubeSpanPeerStatus, 'key of a')!.spec).toMatchObject({
    state: 'unknown',
    endpoint: '10.0.0.5:51820',
    lastHandshakeTime: '0001-01-01T00:00:00Z',
  })
  store.put(MachineConfig, 'v1alpha1', mesh('allowDownPeerBypass: true\nharvestExtraEndpoints: true\n'))
  await os.settled()
  expect(targets()).toBeUndefined()
  const handshake = Date.parse('2026-01-01T00:00:05Z')
  at(new Date(handshake))
  peers.push({ publicKey: 'key of a', endpoint: '192.0.2.9:4711', lastHandshake: handshake / 1000, receivedBytes: 92, sentBytes: 148 })
  store.put(Affiliate, 'a', affiliate('a', { endpoints: ['10.0.0.5:51820', '10.0.0.5:51821'] }))
  await os.settled()
  expect(store.get(KubeSpanPeerStatus, 'key of a')!.spec).toMatchObject({ state: 'up', endpoint: '192.0.2.9:4711', receiveBytes: 92 })
  expect(targets()).toHaveLength(3)
  expect(store.list(KubeSpanEndpoint).map(({ spec }) => spec)).toEqual([{ affiliateID: 'a', endpoint: '192.0.2.9:4711' }])
  store.put(MachineConfig, 'v1alpha1', head)
  await os.settled()
  for (const type of [LinkSpec, AddressSpec, RouteSpec, RoutingRuleSpec])
    expect(store.list<any>(type, { namespace: 'network-config' })).toEqual([])
  expect(store.list(NfTablesChain)).toEqual([])
})

test('a kernel without WireGuard is reported, and no key is published', async () => {
  const { store, os, at } = machine({ hasWireguard: false })
  store.put(Affiliate, 'a', affiliate('a'))
  store.put(MachineConfig, 'v1alpha1', mesh())
  await os.settled()
  expect(store.list(Diagnostic)).toEqual([]) // the module may be on its way
  at(new Date('2026-01-01T00:00:10Z'))
  store.put(Affiliate, 'b', affiliate('b', { address: 'fd00::6' }, '10.0.0.6'))
  await os.settled()
  const { state } = os.controllers().find(({ controller }) => controller.name === 'kubespan.ManagerController')!
  expect([...state.troubles.values()].map(({ message }) => message)).toEqual(['this kernel has no WireGuard'])
  expect(store.get(Diagnostic, 'kubespan-wireguard')!.spec.message).toContain('this kernel has no WireGuard')
  expect(store.list(NfTablesChain)).toEqual([])
  expect(store.list(LinkSpec, { namespace: 'network-config' })).toEqual([])
  // No key is published, so peers do not send here.
  expect(store.list(KubeSpanIdentity)).toEqual([])
})

test('this node publishes its key, filtered and observed endpoints, and its pod networks if configured', async () => {
  const { store, os } = machine()
  store.put(DiscoveryConfig, 'cluster', {
    discoveryEnabled: true,
    registryKubernetesEnabled: false,
    registryServiceEnabled: true,
    serviceEndpoint: 'x:443',
    serviceEncryptionKey: new Uint8Array(32),
    serviceClusterID: 'abc',
  })
  store.put(HostnameStatus, 'hostname', { hostname: 'n1', domainname: '' })
  store.put(Nodename, 'nodename', { nodename: 'n1', hostnameVersion: '1', skipNodeRegistration: false })
  store.put(MachineType, 'machine-type', 'worker')
  store.put(NodeAddress, 'routed-no-k8s', { addresses: ['10.0.0.1/24', '172.16.0.1/24'], sortAlgorithm: 'v1' })
  store.put(NodeStatus, 'n1', {
    nodename: 'n1',
    nodeReady: true,
    unschedulable: false,
    labels: {},
    annotations: {},
    podCIDRs: ['10.244.7.0/24'],
  })
  const seen = { address: '203.0.113.9/32', linkIndex: 0, linkName: '', family: 'inet4', scope: 'global', flags: '', priority: 0 }
  store.put(AddressStatus, 'service/x:443', seen, { namespace: 'cluster' })
  const more =
    'advertiseKubernetesNetworks: true\nfilters: {endpoints: ["0.0.0.0/0", "!172.16.0.0/12"], excludeAdvertisedNetworks: ["10.9.0.0/16"]}\n'
  store.put(MachineConfig, 'v1alpha1', mesh(more))
  await os.settled()
  expect(store.get(Affiliate, 'us')!.spec).toMatchObject({
    addresses: ['10.0.0.1', '172.16.0.1'],
    kubespan: {
      endpoints: ['10.0.0.1:51820', '203.0.113.9:51820'],
      additionalAddresses: ['10.244.7.0/24'],
      excludeAdvertisedNetworks: ['10.9.0.0/16'],
    },
  })
})
