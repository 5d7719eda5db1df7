/** The clients of DHCP, judged by the servers of Debian: a lease from its beginning to each of its ends. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { LinkStatus } from '../../src/os/network/resources/link.ts'
import { ResolverSpec } from '../../src/os/network/resources/resolver.ts'
import { dhcp6Type } from '../../src/wire/dhcp/dhcp6.ts'
import { type Service, servers4, servers6 } from './lab/dhcp-servers.ts'
import { Lab } from './lab/lab.ts'
import { eventually, program } from './lab/namespaces.ts'

let lab: Lab
beforeEach(() => {
  lab = new Lab()
})
afterEach(() => lab.close())

const missing = (name: string) => {
  if (!program(name)) console.log(`skipped: needs ${name}: bun tests/network/prepare.ts installs it`)
  return !program(name)
}
const range: Service = { first: '10.8.0.50', last: '10.8.0.99', lifetime: 300, renew: 100, rebind: 200 }
/** A machine may be slow; nothing here takes as long on one that is not. */
const timeout = 120_000

for (const [name, server] of Object.entries(servers4))
  describe.skipIf(missing(server.program))(`a lease of ${name}`, () => {
    const lifetime = 120

    test('is there, is renewed, and is released with the configuration', async () => {
      // dnsmasq ignores times below three seconds.
      await server.start(lab, { ...range, lifetime, renew: 3, rebind: 15 })
      lab.say('kind: DHCPv4Config\nname: eth0\n')
      await eventually(() => lab.addresses().includes('10.8.0.50/24') && lab.route(undefined), 'the lease', timeout)
      await eventually(() => lab.logged('lease renewed') >= 2, 'it is renewed', timeout)
      expect(lab.logged('address leased')).toBe(1)
      lab.say()
      await eventually(() => lab.addresses().length === 0 && !lab.route(undefined), 'it is gone', timeout)
    })

    test('is rebound by another server when its own is gone', async () => {
      const first = await server.start(lab, { ...range, last: '10.8.0.50', lifetime, renew: 1, rebind: 3 })
      lab.say('kind: DHCPv4Config\nname: eth0\n')
      await eventually(() => lab.addresses().includes('10.8.0.50/24'), 'the lease', timeout)
      await lab.stop(first)
      // The other speaks from elsewhere: what is sent to the first alone is never answered.
      lab.server.removeAddress({ link: lab.server.indexOf('br0'), address: '10.8.0.1/24' })
      lab.serverAddress('10.8.0.3/24')
      const before = lab.logged('lease renewed')
      await server.start(lab, { ...range, last: '10.8.0.50', lifetime, renew: 100, rebind: 110, from: '10.8.0.3' })
      await eventually(() => lab.logged('lease renewed') > before, 'it is rebound', timeout)
      expect(lab.addresses()).toEqual(['10.8.0.50/24'])
      await eventually(() => lab.route(undefined)?.gateway === '10.8.0.3', "the other's route", timeout)
    })

    // A server whose shortest lease is too long for a test is covered by the other scenarios.
    if (server.shortest <= 30)
      test('ends when nobody renews it, and another comes with the next server', async () => {
        const first = await server.start(lab, { ...range, lifetime: 10, renew: 5, rebind: 8 })
        lab.say('kind: DHCPv4Config\nname: eth0\n')
        await eventually(() => lab.addresses().includes('10.8.0.50/24'), 'the lease', timeout)
        await lab.stop(first)
        await eventually(() => lab.addresses().length === 0 && !lab.route(undefined), 'it has ended', timeout)
        expect(lab.logged('lease expired')).toBeGreaterThan(0)
        await server.start(lab, { ...range, first: '10.8.0.60' })
        await eventually(() => lab.addresses().includes('10.8.0.60/24') && lab.route(undefined), 'another', timeout)
      })

    test('that is refused after the cable was out is given up for another', async () => {
      // If no refusal is received at once, it comes with the next renewal.
      const first = await server.start(lab, { ...range, lifetime, renew: 10, rebind: 20 })
      lab.say('kind: DHCPv4Config\nname: eth0\n')
      await eventually(() => lab.addresses().includes('10.8.0.50/24'), 'the lease', timeout)
      lab.server.setLink('port0', { up: false })
      await eventually(() => lab.machine.store.get(LinkStatus, 'eth0')?.spec.operationalState !== 'up', 'the cable is out', timeout)
      expect(lab.addresses()).toEqual(['10.8.0.50/24'])
      await lab.stop(first)
      // The network is another one now, in which the address has no place.
      lab.server.removeAddress({ link: lab.server.indexOf('br0'), address: '10.8.0.1/24' })
      lab.serverAddress('10.9.0.1/24')
      await server.start(lab, { ...range, first: '10.9.0.50', last: '10.9.0.99', from: '10.9.0.1' })
      lab.server.setLink('port0', { up: true })
      await eventually(() => lab.addresses().includes('10.9.0.50/24') && lab.route(undefined)?.gateway === '10.9.0.1', 'another', timeout)
      expect(lab.addresses()).toEqual(['10.9.0.50/24'])
    })

    test('whose address another station has is declined', async () => {
      const path = lab.spaces.make('other')
      lab.server.addVeth({ name: 'port1', master: lab.server.indexOf('br0'), up: true, peer: { name: 'eth0', up: true }, peerNetns: path })
      const other = lab.spaces.network(path)
      other.addAddress({ link: other.indexOf('eth0'), address: '10.8.0.50/24' })
      await server.start(lab, { ...range, last: '10.8.0.51' })
      lab.say('kind: DHCPv4Config\nname: eth0\n')
      await eventually(() => lab.addresses().includes('10.8.0.51/24'), 'the other address', timeout)
      // Which of the two is offered first is the server's to say.
      if (lab.logged('declining leased address, another host holds it') === 0) expect(name).toBe('isc')
    })
  })

const range6: Service = { first: 'fd00:8::100', last: 'fd00:8::1ff', lifetime: 300, renew: 100, rebind: 200 }
for (const [name, server] of Object.entries(servers6))
  describe.skipIf(missing(server.program))(`an IPv6 lease of ${name}`, () => {
    const ours = () => lab.addresses('inet6').filter((address) => address.endsWith('/128'))
    /** The kinds of messages that pass, behind the headers of Ethernet, IPv6 and UDP. */
    const listen = (): number[] => {
      const heard: number[] = []
      lab.capture('ip6 and udp port 547', (frame) => heard.push(frame[62]!))
      return heard
    }

    test('is there after four messages, with its name servers, and is released with the configuration', async () => {
      await server.start(lab, range6)
      const heard = listen()
      lab.say('kind: DHCPv6Config\nname: eth0\n')
      await eventually(() => ours().length === 1, 'the lease', timeout)
      await eventually(
        () => lab.machine.store.get(ResolverSpec, 'resolvers')?.spec.dnsServers.includes('fd00:8::1'),
        'its servers',
        timeout,
      )
      const { solicit, advertise, request, reply } = dhcp6Type
      await eventually(() => heard.includes(reply), 'the reply is heard', timeout)
      expect(heard).toEqual(expect.arrayContaining([solicit, advertise, request, reply]))
      lab.say()
      await eventually(() => ours().length === 0, 'it is gone', timeout)
    })

    test('is there after two messages from a server that commits rapidly', async () => {
      await server.start(lab, { ...range6, rapid: true })
      const heard = listen()
      lab.say('kind: DHCPv6Config\nname: eth0\n')
      await eventually(() => ours().length === 1, 'the lease', timeout)
      await eventually(() => heard.includes(dhcp6Type.reply), 'the reply is heard', timeout)
      expect(heard).not.toContain(dhcp6Type.request)
    })

    test('whose address another station has is declined', async () => {
      const path = lab.spaces.make('other')
      lab.server.addVeth({ name: 'port1', master: lab.server.indexOf('br0'), up: true, peer: { name: 'eth0', up: true }, peerNetns: path })
      const other = lab.spaces.network(path)
      const nodad = 2 // IFA_F_NODAD
      other.addAddress({ link: other.indexOf('eth0'), address: 'fd00:8::100/64', flags: nodad })
      await server.start(lab, { ...range6, last: 'fd00:8::101' })
      lab.say('kind: DHCPv6Config\nname: eth0\n')
      await eventually(() => ours().includes('fd00:8::101/128') && ours().length === 1, 'the other address', timeout)
      // Which of the two is offered first is the server's to say.
      if (lab.logged('declining leased address, another host holds it') === 0) expect(name).toBe('isc')
    })

    test('is renewed, and ends when nobody renews it', async () => {
      const first = await server.start(lab, { ...range6, lifetime: 12, renew: 1, rebind: 6 })
      lab.say('kind: DHCPv6Config\nname: eth0\n')
      await eventually(() => ours().length === 1, 'the lease', timeout)
      await eventually(() => lab.logged('lease renewed') >= 2, 'it is renewed', timeout)
      await lab.stop(first)
      await eventually(() => ours().length === 0, 'it has ended', timeout)
      expect(lab.logged('lease expired')).toBeGreaterThan(0)
    })
  })
