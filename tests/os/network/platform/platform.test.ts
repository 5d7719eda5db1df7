import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { silent } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { applyPlatformConfig, loadPlatformConfig } from '../../../../src/os/network/controllers/platform.ts'
import { PlatformConfigError, readPlatformConfig } from '../../../../src/os/network/platform/platform-config.ts'
import { readNetworkConfig } from '../../../../src/os/network/platform/providers/nocloud.ts'
import { AddressSpec } from '../../../../src/os/network/resources/address.ts'
import { OperatorSpec } from '../../../../src/os/network/resources/operator-spec.ts'
import { RouteSpec } from '../../../../src/os/network/resources/route.ts'
import { MetaKey } from '../../../../src/os/runtime/resources/meta.ts'
import { runs } from '../../../support/runs.ts'

const meta = `addresses:
  - {address: 10.5.0.2/24, linkName: bond0}
links:
  - {name: bond0, logical: true, kind: bond, bondMaster: {mode: active-backup, xmitHashPolicy: layer2, lacpRate: slow, arpValidate: none, arpAllTargets: any, primaryReselect: always, failOverMac: none}}
  - {name: eth0, masterName: bond0}
routes:
  - {dst: 0.0.0.0/0, gateway: 10.5.0.1, outLinkName: bond0}
hostnames: [{hostname: node-1, domainname: example.org}]
resolvers: [{dnsServers: [10.5.0.1]}]
timeServers: [{timeServers: [10.5.0.1]}]
operators:
  - {operator: dhcp4, linkName: eth1, dhcp4: {routeMetric: 512}}
`

test('META key 10 becomes the platform layer, and is removed with the key', async () => {
  const store = new Store()
  const os = new Runtime(store, { log: silent })
  const open = () => {
    throw new Error('nobody speaks for this machine')
  }
  os.register(loadPlatformConfig({ platform: undefined, store, open }), applyPlatformConfig('metal'))
  os.start()
  store.put(MetaKey, '0x0a', { value: meta })
  await os.settled()
  const layered = { namespace: 'network-config' }
  expect(store.get(AddressSpec, 'platform/bond0/10.5.0.2/24', layered)?.spec).toMatchObject({ family: 'inet4', layer: 'platform' })
  expect(store.get(RouteSpec, 'platform/bond0/inet4/10.5.0.1//1024', layered)?.spec).toMatchObject({ dst: '', scope: 'global' })
  expect(store.get(OperatorSpec, 'platform/dhcp4/eth1', layered)?.spec.dhcp4?.routeMetric).toBe(512)
  store.destroy(MetaKey, '0x0a')
  await os.settled()
  expect(store.list(AddressSpec, layered)).toEqual([])
})

test('invalid META content fails with a one-line error', () => {
  expect(() => readPlatformConfig('[1]')).toThrow('META key 10: expected a mapping')
  expect(() => readPlatformConfig('addresses: [{linkName: eth0}]')).toThrow(/^META key 10: addresses\.0\.address: /)
  expect(() => readPlatformConfig('links: 5')).toThrow('"links" must be a list of mappings')
})

const known = [
  { name: 'eth0', hardwareAddress: '02:00:00:00:00:01', index: 2 },
  { name: 'eth1', hardwareAddress: '02:00:00:00:00:02', index: 3 },
]
const recorded = (config: ReturnType<typeof readNetworkConfig>) => ({
  links: config.links.map(({ name, kind, mtu, masterName }) => [name, kind, mtu, masterName].filter(Boolean).join(' ')),
  addresses: config.addresses.map(({ linkName, address }) => `${linkName} ${address}`),
  routes: config.routes.map(({ outLinkName, dst, gateway, priority }) => `${outLinkName} ${dst || 'default'} ${gateway} ${priority}`),
  operators: config.operators.map(({ operator, linkName }) => `${operator} ${linkName}`),
  resolvers: config.resolvers.map(({ dnsServers, searchDomains }) => [...dnsServers, ...(searchDomains ?? [])].join(' ')),
})

describe('network-config', () => {
  test('version 1', () => {
    const config = readNetworkConfig(
      `version: 1
config:
  - type: physical
    name: nic
    mac_address: "02:00:00:00:00:02"
    mtu: 1400
    subnets:
      - {type: static, address: 10.0.0.2, netmask: 255.255.255.0, gateway: 10.0.0.1, dns_nameservers: [10.0.0.3]}
      - type: static6
        address: FD00::2/64
        routes: [{network: "fd01::", prefix: 32, gateway: "fd00::1", metric: 7}]
  - {type: physical, name: gone, mac_address: "02:00:00:00:00:99", subnets: [{type: dhcp}]}
  - {type: vlan, name: nic.5, vlan_link: nic, vlan_id: 5, subnets: [{type: dhcp4}]}
  - {type: bond, name: bond0, bond_interfaces: [eth0], params: {bond-mode: active-backup, bond-miimon: 100}}
  - {type: nameserver, address: 10.0.0.4, search: [example.org]}
`,
      known,
      'node-1.example.org',
    )
    expect(recorded(config)).toEqual({
      links: ['eth1 1400', 'nic.5 vlan', 'bond0 bond', 'eth0 bond0'],
      addresses: ['eth1 10.0.0.2/24', 'eth1 fd00::2/64'],
      routes: ['eth1 default 10.0.0.1 1024', 'eth1 fd01::/32 fd00::1 7'],
      operators: ['dhcp4 nic.5'],
      resolvers: ['10.0.0.3 10.0.0.4 example.org'],
    })
    expect(config.hostnames).toEqual([{ hostname: 'node-1', domainname: 'example.org', layer: 'platform' }])
    expect(config.links.find(({ name }) => name === 'nic.5')?.parentName).toBe('eth1')
  })

  test('version 2, also wrapped as in netplan', () => {
    const config = readNetworkConfig(
      `network:
  version: 2
  ethernets:
    uplink:
      match: {macaddress: "02:00:00:00:00:01"}
      dhcp4: true
      dhcp4-overrides: {route-metric: 50}
      nameservers: {addresses: [10.0.0.3], search: [example.org]}
    eth1:
      addresses: [10.1.0.2/24]
      gateway4: 10.1.0.1
      routes: [{to: 10.9.0.0/16, via: 10.1.0.9, metric: 3}]
  vlans:
    v7: {id: 7, link: uplink, dhcp6: true}
  bridges:
    br0: {interfaces: [eth1], parameters: {stp: true}}
`,
      known,
    )
    expect(recorded(config)).toEqual({
      links: ['eth0', 'eth1', 'br0 bridge', 'v7 vlan'],
      addresses: ['eth1 10.1.0.2/24'],
      routes: ['eth1 10.9.0.0/16 10.1.0.9 3', 'eth1 default 10.1.0.1 1024'],
      operators: ['dhcp4 eth0', 'dhcp6 v7'],
      resolvers: ['10.0.0.3 example.org'],
    })
    expect(config.operators[0]?.dhcp4?.routeMetric).toBe(50)
  })

  test('another version, or none, fails with a one-line error', () => {
    expect(() => readNetworkConfig('version: 3', known)).toThrow('version 3 is not supported: use 1 or 2')
    expect(() => readNetworkConfig('a: &a [1]\nb: *a\n', known)).toThrow(PlatformConfigError)
    expect(() => readNetworkConfig('version: 1\nconfig: [{type: tunnel}]', known)).toThrow('config.0: type "tunnel" is not known')
    expect(() => readNetworkConfig('version: 2\nvlans: {v: {id: 5000, link: eth0}}', known)).toThrow('VLAN "v": a number from 1 to 4094')
  })

  test('any text is parsed or rejected', () => {
    const any = fc.oneof(
      fc.string(),
      fc.json().map((json) => `version: 2\nethernets: ${json}`),
      fc.json().map((json) => `version: 1\nconfig: ${json}`),
    )
    fc.assert(
      fc.property(any, (text) => {
        for (const read of [() => readNetworkConfig(text, known), () => readPlatformConfig(text)])
          try {
            read()
          } catch (error) {
            expect(error).toBeInstanceOf(PlatformConfigError)
          }
      }),
      { numRuns: runs(300) },
    )
  })
})
