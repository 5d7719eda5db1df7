/** What comes with a lease of DHCP, and what becomes of it, over a cable to dnsmasq. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { HostnameSpec } from '../../src/os/network/resources/hostname.ts'
import { LinkStatus } from '../../src/os/network/resources/link.ts'
import { ResolverSpec } from '../../src/os/network/resources/resolver.ts'
import { TimeServerSpec } from '../../src/os/network/resources/time-server.ts'
import { dnsmasq, dnsmasqServing } from './lab/dnsmasq.ts'
import { Lab, linkAddress } from './lab/lab.ts'
import { eventually } from './lab/namespaces.ts'

const story = test.skipIf(!dnsmasq)
if (!dnsmasq) console.log('skipped: needs dnsmasq: bun tests/network/prepare.ts installs it')

let lab: Lab
beforeEach(() => {
  lab = new Lab()
})
afterEach(() => lab.close())

const serve = async (...options: string[]): Promise<void> => {
  if (options.some((option) => option.includes('fd00:'))) await lab.ready6()
  await lab.start(dnsmasqServing(lab.spaces.folder, 'br0', ...options), /DHCP(v6)?, /)
}

story('a link is given its address, routes, names and servers by DHCP, and loses them with the configuration', async () => {
  await serve(
    'dhcp-range=10.8.0.50,10.8.0.99,2m',
    'dhcp-option=option:router,10.8.0.1',
    'dhcp-option=option:dns-server,10.8.0.1,10.8.0.2',
    'dhcp-option=option:ntp-server,10.8.0.3',
    'dhcp-option=option:mtu,1420',
    'dhcp-option=option:domain-search,eng.example.org,example.org',
    'domain=example.org',
    `dhcp-host=${linkAddress},10.8.0.77,node-seven`,
  )
  const begin = performance.now()
  lab.say('kind: DHCPv4Config\nname: eth0\nrouteMetric: 99\n')
  await eventually(() => lab.addresses().includes('10.8.0.77/24') && lab.route(undefined), 'the lease')
  console.log(`from configuration to route: ${Math.round(performance.now() - begin)} ms`)
  expect(lab.route(undefined)).toMatchObject({ gateway: '10.8.0.1', priority: 99, protocol: 16, preferredSource: '10.8.0.77' })
  await eventually(() => lab.node.link('eth0')?.mtu === 1420, 'the MTU')
  await lab.machine.os.settled()
  const { store } = lab.machine
  expect(store.get(HostnameSpec, 'hostname')?.spec).toEqual({ hostname: 'node-seven', domainname: 'example.org', layer: 'operator' })
  expect(store.get(ResolverSpec, 'resolvers')?.spec).toMatchObject({
    dnsServers: ['10.8.0.1', '10.8.0.2'],
    searchDomains: ['eng.example.org', 'example.org'],
  })
  expect(store.get(TimeServerSpec, 'timeservers')?.spec.timeServers).toEqual(['10.8.0.3'])
  lab.say('kind: LinkConfig\nname: eth0\nmtu: 1500\n')
  await eventually(() => lab.addresses().length === 0 && !lab.route(undefined) && lab.node.link('eth0')?.mtu === 1500, 'all is gone')
})

story('routes of option 121 are there, and a configured MTU beats the server’s', async () => {
  await serve(
    'dhcp-range=10.8.0.50,10.8.0.99,2m',
    'dhcp-option=option:mtu,1420',
    'dhcp-option=121,0.0.0.0/0,10.8.0.1,172.16.0.0/12,10.8.0.9',
  )
  lab.say('kind: DHCPv4Config\nname: eth0\n', 'kind: LinkConfig\nname: eth0\nmtu: 1480\n')
  await eventually(() => lab.route('172.16.0.0/12')?.gateway === '10.8.0.9' && lab.route(undefined)?.gateway === '10.8.0.1', 'both routes')
  await eventually(() => lab.node.link('eth0')?.mtu === 1480, 'the MTU')
})

story('a cable that is out keeps the lease, and one that is back requests it again', async () => {
  await serve('dhcp-range=10.8.0.50,10.8.0.99,2m', 'dhcp-option=option:router,10.8.0.1')
  lab.say('kind: DHCPv4Config\nname: eth0\n')
  const [before] = await eventually(() => lab.addresses().length > 0 && lab.addresses(), 'the lease')
  lab.server.setLink('port0', { up: false })
  await eventually(() => lab.machine.store.get(LinkStatus, 'eth0')?.spec.operationalState !== 'up', 'the cable is out')
  expect(lab.addresses()).toEqual([before!])
  lab.server.setLink('port0', { up: true })
  await eventually(() => lab.logged('address leased') >= 2, 'the lease is requested again')
  expect(lab.addresses()).toEqual([before!])
  await eventually(() => lab.route(undefined), 'the route')
})

story('a server that comes late is found', async () => {
  let requests = 0
  lab.capture('udp dst port 67', () => requests++)
  lab.say('kind: DHCPv4Config\nname: eth0\n')
  await eventually(() => requests > 0, 'it sends requests that nobody answers')
  await serve('dhcp-range=10.8.0.50,10.8.0.99,2m')
  await eventually(() => lab.addresses().length > 0, 'the lease')
})

story('a link is given its IPv6 address by DHCP', async () => {
  await serve(
    'dhcp-range=fd00:8::100,fd00:8::100,64,2m',
    'dhcp-option=option6:dns-server,[fd00:8::1]',
    'dhcp-option=option6:domain-search,six.example.org',
  )
  lab.say('kind: DHCPv6Config\nname: eth0\n')
  await eventually(() => lab.addresses('inet6').includes('fd00:8::100/128'), 'the lease')
  await lab.machine.os.settled()
  expect(lab.machine.store.get(ResolverSpec, 'resolvers')?.spec).toMatchObject({
    dnsServers: ['fd00:8::1'],
    searchDomains: ['six.example.org'],
  })
  lab.say()
  await eventually(() => lab.addresses('inet6').length === 0, 'it is gone')
})

story('both families at once, on a bridge', async () => {
  await serve(
    'dhcp-range=fd00:8::100,fd00:8::1ff,64,2m',
    'dhcp-range=10.8.0.50,10.8.0.99,2m',
    'dhcp-option=option:router,10.8.0.1',
    'dhcp-option=option6:dns-server,[fd00:8::1]',
  )
  lab.say('kind: BridgeConfig\nname: br0\nlinks: [eth0]\n', 'kind: DHCPv4Config\nname: br0\n', 'kind: DHCPv6Config\nname: br0\n')
  await eventually(() => lab.addresses().length === 1 && lab.addresses('inet6').length === 1 && lab.route(undefined), 'both leases')
  expect(lab.node.addresses().find(({ address }) => address === lab.addresses()[0])?.link).toBe(lab.node.indexOf('br0'))
  await eventually(() => lab.machine.store.get(ResolverSpec, 'resolvers')?.spec.dnsServers.includes('fd00:8::1'), 'its server')
})

story('a server knows the machine by the name it is to have before servers, in both families', async () => {
  const duid = '00:02:00:00:00:0a:01:02:03:04' // one that an enterprise gives (RFC 8415 11.3)
  const association = linkAddress.split(':').slice(-4).join(':')
  await serve(
    'dhcp-range=10.8.0.50,10.8.0.99,2m',
    'dhcp-range=fd00:8::100,fd00:8::1ff,64,2m',
    `dhcp-host=id:ff:${association}:${duid},10.8.0.81`, // RFC 4361 6.1
    `dhcp-host=id:01:${linkAddress},10.8.0.82`,
    `dhcp-host=id:${duid},[fd00:8::1bb]`,
    `dhcp-host=id:00:03:00:01:${linkAddress},[fd00:8::1aa]`,
  )
  const named = (kind: string, ...more: string[]) => [`kind: ${kind}`, 'name: eth0', ...more, ''].join('\n')
  lab.say(named('DHCPv4Config', 'clientIdentifier: mac'), named('DHCPv6Config'))
  const has = (four: string, six: string) => lab.addresses().join() === four && lab.addresses('inet6').join() === six
  await eventually(() => has('10.8.0.82/24', 'fd00:8::1aa/128'), 'the reservation')
  const own = ['clientIdentifier: duid', `duidRaw: "${duid}"`]
  lab.say(named('DHCPv4Config', ...own), named('DHCPv6Config', ...own))
  await eventually(() => has('10.8.0.81/24', 'fd00:8::1bb/128'), 'what is for the name')
})
