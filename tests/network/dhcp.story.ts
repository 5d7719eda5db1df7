import { afterEach, beforeEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import type { Network } from '../../src/linux/net.ts'
import { MachineConfig } from '../../src/os/config/resources/machine-config.ts'
import { applyAddresses, configAddresses, mergeAddresses } from '../../src/os/network/controllers/address.ts'
import { configDevices } from '../../src/os/network/controllers/device-config.ts'
import { mergeHostname } from '../../src/os/network/controllers/hostname.ts'
import { applyLinks, configLinks, mergeLinks } from '../../src/os/network/controllers/link.ts'
import { observeAddresses, observeLinks, observeRoutes } from '../../src/os/network/controllers/observe.ts'
import { applyOperators, configOperators, mergeOperators } from '../../src/os/network/controllers/operator.ts'
import { mergeResolvers } from '../../src/os/network/controllers/resolver.ts'
import { applyRoutes, configRoutes, mergeRoutes } from '../../src/os/network/controllers/route.ts'
import { mergeTimeServers } from '../../src/os/network/controllers/time-server.ts'
import { dhcp4Operator } from '../../src/os/network/operators/dhcp4.ts'
import { dhcp6Operator } from '../../src/os/network/operators/dhcp6.ts'
import { HostnameSpec } from '../../src/os/network/resources/hostname-spec.ts'
import { LinkStatus } from '../../src/os/network/resources/link-status.ts'
import { ResolverSpec } from '../../src/os/network/resources/resolver-spec.ts'
import { TimeServerSpec } from '../../src/os/network/resources/time-server-spec.ts'
import { eventually, kernelOf, Namespaces, running, spawnIn } from './namespaces.ts'

/** Debian's dnsmasq-base; without it these stories are skipped and say so. */
const dnsmasq = Bun.which('dnsmasq') ?? Bun.which('/usr/sbin/dnsmasq')
const story = test.skipIf(!dnsmasq)
if (!dnsmasq) console.log('skipped: needs dnsmasq (apt-get install dnsmasq-base)')

let spaces: Namespaces
let node: Network
let server: Network
let machine: ReturnType<typeof running>
let daemons: ReturnType<typeof spawnIn>[] = []

beforeEach(() => {
  spaces = new Namespaces()
  const path = spaces.make('node')
  spaces.make('server')
  node = spaces.network(path)
  server = spaces.network(`${spaces.folder}/server`)
  server.addBridge({ name: 'br0', up: true })
  server.addVeth({
    name: 'port0',
    master: server.indexOf('br0'),
    up: true,
    peer: { name: 'eth0', hardwareAddress: '02:00:00:00:00:05' },
    peerNetns: path,
  })
  server.addAddress({ link: server.indexOf('br0'), address: '10.8.0.1/24' })
  server.addAddress({ link: server.indexOf('br0'), address: 'fd00:8::1/64', flags: 2 })
  const kernel = kernelOf(path)
  machine = running(
    observeLinks(kernel),
    observeAddresses(kernel),
    observeRoutes(kernel),
    configDevices(),
    configLinks(kernel),
    mergeLinks,
    applyLinks(kernel),
    configAddresses(),
    mergeAddresses,
    applyAddresses(kernel),
    configRoutes(),
    mergeRoutes,
    applyRoutes(kernel),
    configOperators(kernel),
    mergeOperators,
    applyOperators({ dhcp4: dhcp4Operator(kernel.packet), dhcp6: dhcp6Operator(kernel.packet) }),
    mergeHostname,
    mergeResolvers,
    mergeTimeServers,
  )
})
afterEach(async () => {
  if (process.env.SHOW)
    for (const { time, level, message, fields } of machine.entries) console.log(time.toISOString(), level, message, JSON.stringify(fields))
  machine.stop()
  for (const daemon of daemons) {
    daemon.kill('SIGKILL')
    await daemon.exited
  }
  daemons = []
  spaces.close()
})

async function serve(...options: string[]): Promise<void> {
  const conf = `${spaces.folder}/dnsmasq.conf`
  writeFileSync(
    conf,
    [
      'port=0',
      'interface=br0',
      'bind-interfaces',
      'no-ping',
      'leasefile-ro',
      'dhcp-authoritative',
      'log-dhcp',
      'user=root',
      ...options,
    ].join('\n'),
  )
  const daemon = spawnIn(`${spaces.folder}/server`, [dnsmasq!, '--keep-in-foreground', '--log-facility=-', `--conf-file=${conf}`])
  daemons.push(daemon)
  const reader = daemon.stderr.getReader()
  let text = ''
  while (!text.includes('DHCP, ') && !text.includes('DHCPv6, ')) {
    const { value, done } = await reader.read()
    if (done) throw new Error(`dnsmasq: ${text}`)
    text += Buffer.from(value).toString()
  }
  void (async () => {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) if (process.env.SHOW) process.stderr.write(chunk.value)
  })()
}

const say = (...documents: string[]) =>
  machine.store.put(
    MachineConfig,
    'v1alpha1',
    ['version: v1alpha1\nmachine:\n  type: worker\ncluster: {}\n', ...documents.map((text) => `apiVersion: v1alpha1\n${text}`)].join(
      '---\n',
    ),
  )
const addresses = (family = 2) => node.addresses().flatMap((found) => (found.family === family && found.scope === 0 ? [found.address] : []))
const route = (destination: string | undefined) =>
  node.routes().find((found) => found.destination === destination && found.table === 254 && found.family === 2)

story('a link is given its address, routes, names and servers by DHCP, and loses them with the wish', async () => {
  await serve(
    'dhcp-range=10.8.0.50,10.8.0.99,2m',
    'dhcp-option=option:router,10.8.0.1',
    'dhcp-option=option:dns-server,10.8.0.1,10.8.0.2',
    'dhcp-option=option:ntp-server,10.8.0.3',
    'dhcp-option=option:mtu,1420',
    'dhcp-option=option:domain-search,eng.example.org,example.org',
    'domain=example.org',
    'dhcp-host=02:00:00:00:00:05,10.8.0.77,node-seven',
  )
  const begin = performance.now()
  say('kind: DHCPv4Config\nname: eth0\nrouteMetric: 99\n')
  await eventually(() => addresses().includes('10.8.0.77/24') && route(undefined), 'the lease')
  console.log(`from wish to route: ${Math.round(performance.now() - begin)} ms`)
  expect(route(undefined)).toMatchObject({ gateway: '10.8.0.1', priority: 99, protocol: 16, preferredSource: '10.8.0.77' })
  await eventually(() => node.link('eth0')?.mtu === 1420, 'the MTU')
  const { store } = machine
  expect(store.get(HostnameSpec, 'hostname')?.spec).toEqual({ hostname: 'node-seven', domainname: 'example.org', layer: 'operator' })
  expect(store.get(ResolverSpec, 'resolvers')?.spec).toMatchObject({
    dnsServers: ['10.8.0.1', '10.8.0.2'],
    searchDomains: ['eng.example.org', 'example.org'],
  })
  expect(store.get(TimeServerSpec, 'timeservers')?.spec.timeServers).toEqual(['10.8.0.3'])
  say('kind: LinkConfig\nname: eth0\nmtu: 1500\n')
  await eventually(() => addresses().length === 0 && !route(undefined) && node.link('eth0')?.mtu === 1500, 'all is gone')
})

story('routes of option 121 are there, and a configured MTU beats the server’s', async () => {
  await serve(
    'dhcp-range=10.8.0.50,10.8.0.99,2m',
    'dhcp-option=option:mtu,1420',
    'dhcp-option=121,0.0.0.0/0,10.8.0.1,172.16.0.0/12,10.8.0.9',
  )
  say('kind: DHCPv4Config\nname: eth0\n', 'kind: LinkConfig\nname: eth0\nmtu: 1480\n')
  await eventually(() => route('172.16.0.0/12')?.gateway === '10.8.0.9' && route(undefined)?.gateway === '10.8.0.1', 'both routes')
  await eventually(() => node.link('eth0')?.mtu === 1480, 'the MTU')
})

story('an address that another station has is declined, and another taken', async () => {
  const path = spaces.make('other')
  server.addVeth({ name: 'port1', master: server.indexOf('br0'), up: true, peer: { name: 'eth0', up: true }, peerNetns: path })
  const other = spaces.network(path)
  other.addAddress({ link: other.indexOf('eth0'), address: '10.8.0.50/24' })
  await serve('dhcp-range=10.8.0.50,10.8.0.51,2m', 'dhcp-sequential-ip')
  say('kind: DHCPv4Config\nname: eth0\n')
  await eventually(() => machine.entries.some(({ message }) => message.includes('taken, it is declined')), 'a decline')
  await eventually(() => addresses().includes('10.8.0.51/24'), 'the other address', 30_000)
})

story('a cable that is out keeps the lease, and one that is back asks for it again', async () => {
  await serve('dhcp-range=10.8.0.50,10.8.0.99,2m', 'dhcp-option=option:router,10.8.0.1')
  say('kind: DHCPv4Config\nname: eth0\n')
  const [before] = await eventually(() => addresses().length > 0 && addresses(), 'the lease')
  server.setLink('port0', { up: false })
  await eventually(() => machine.store.get(LinkStatus, 'eth0')?.spec.operationalState !== 'up', 'the cable is out')
  expect(addresses()).toEqual([before!])
  server.setLink('port0', { up: true })
  await eventually(() => machine.entries.filter(({ message }) => message === 'address leased').length === 2, 'the lease is asked for again')
  expect(addresses()).toEqual([before!])
  await eventually(() => route(undefined), 'the route')
})

story('a server that comes late is found', async () => {
  say('kind: DHCPv4Config\nname: eth0\n')
  await Bun.sleep(300)
  await serve('dhcp-range=10.8.0.50,10.8.0.99,2m')
  await eventually(() => addresses().length > 0, 'the lease')
})

story('a link is given its IPv6 address by DHCP', async () => {
  await serve(
    'dhcp-range=fd00:8::100,fd00:8::100,64,2m',
    'dhcp-option=option6:dns-server,[fd00:8::1]',
    'dhcp-option=option6:domain-search,six.example.org',
  )
  say('kind: DHCPv6Config\nname: eth0\n')
  await eventually(() => addresses(10).includes('fd00:8::100/128'), 'the lease')
  expect(machine.store.get(ResolverSpec, 'resolvers')?.spec).toMatchObject({
    dnsServers: ['fd00:8::1'],
    searchDomains: ['six.example.org'],
  })
  say()
  await eventually(() => addresses(10).length === 0, 'it is gone')
})

story('both families at once, on a bridge', async () => {
  await serve(
    'dhcp-range=fd00:8::100,fd00:8::1ff,64,2m',
    'dhcp-range=10.8.0.50,10.8.0.99,2m',
    'dhcp-option=option:router,10.8.0.1',
    'dhcp-option=option6:dns-server,[fd00:8::1]',
  )
  say('kind: BridgeConfig\nname: br0\nlinks: [eth0]\n', 'kind: DHCPv4Config\nname: br0\n', 'kind: DHCPv6Config\nname: br0\n')
  await eventually(() => addresses().length === 1 && addresses(10).length === 1 && route(undefined), 'both leases')
  expect(node.addresses().find(({ address }) => address === addresses()[0])?.link).toBe(node.indexOf('br0'))
  expect(machine.store.get(ResolverSpec, 'resolvers')?.spec.dnsServers).toContain('fd00:8::1')
})
