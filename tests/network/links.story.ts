import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { netlinkProtocol, watchNetlink } from '../../src/linux/net/netlink-socket.ts'
import type { Network } from '../../src/linux/net/rtnetlink.ts'
import { MachineConfig } from '../../src/os/config/resources/machine-config.ts'
import { observeRoutingRules } from '../../src/os/network/controllers/route/routing-rule.ts'
import { AddressStatus } from '../../src/os/network/resources/address.ts'
import { LinkStatus } from '../../src/os/network/resources/link.ts'
import { RouteStatus } from '../../src/os/network/resources/route.ts'
import { addressing, ruling } from './lab/controllers.ts'
import { eventually, kernelOf, Namespaces, running } from './lab/namespaces.ts'

let spaces: Namespaces
let node: Network
let machine: ReturnType<typeof running>

beforeEach(() => {
  spaces = new Namespaces()
  const path = spaces.make('node')
  spaces.make('peer')
  node = spaces.network(path)
  for (const name of ['eth0', 'eth1']) node.addVeth({ name, up: false, peer: { name: `peer-${name}` }, peerNetns: `${spaces.folder}/peer` })
  const peer = spaces.network(`${spaces.folder}/peer`)
  for (const name of ['eth0', 'eth1']) peer.setLink(`peer-${name}`, { up: true })
  const kernel = kernelOf(path)
  machine = running(...addressing(kernel), ...ruling(kernel), observeRoutingRules(kernel))
})
afterEach(() => {
  if (process.env.SHOW) for (const { level, message, fields } of machine.entries) console.log(level, message, JSON.stringify(fields))
  machine.stop()
  spaces.close()
})

const head = 'version: v1alpha1\nmachine:\n  type: worker\n'
const say = (interfaces: string, ...documents: string[]) =>
  machine.store.put(
    MachineConfig,
    'v1alpha1',
    [
      `${head}${interfaces && `  network:\n    interfaces:\n${interfaces}`}cluster: {}\n`,
      ...documents.map((text) => `apiVersion: v1alpha1\n${text}`),
    ].join('---\n'),
  )
const addresses = (name: string) => {
  const link = node.link(name)?.index
  return node.addresses().flatMap(({ link: on, address, scope }) => (on === link && scope === 0 ? [address] : []))
}
const route = (destination: string | undefined, table = 254) =>
  node.routes().find((found) => found.destination === destination && found.table === table && found.family === 2)

describe('the kernel has what is declared', () => {
  test('in the old form: addresses, routes, MTU, and after a change just that change', async () => {
    say(`      - interface: eth0
        mtu: 1400
        addresses: [10.5.0.2/24, "fd00:5::2/64"]
        routes:
          - {network: 0.0.0.0/0, gateway: 10.5.0.1}
          - {network: 10.99.0.0/16, gateway: 10.5.0.9, metric: 7, mtu: 1300}
`)
    await eventually(() => route(undefined)?.gateway === '10.5.0.1' && route('10.99.0.0/16'), 'routes')
    await eventually(() => addresses('eth0').sort().join() === '10.5.0.2/24,fd00:5::2/64', 'addresses')
    await eventually(() => node.link('eth0')?.mtu === 1400, 'the MTU')
    expect(route('10.99.0.0/16')).toMatchObject({ gateway: '10.5.0.9', priority: 7, mtu: 1300, protocol: 4 })
    await eventually(() => machine.store.get(RouteStatus, 'eth0/inet4/10.5.0.9/10.99.0.0/16/7'), 'its status')
    say(`      - interface: eth0
        mtu: 1400
        addresses: [10.5.0.2/24]
        routes:
          - {network: 0.0.0.0/0, gateway: 10.5.0.1}
`)
    await eventually(() => !route('10.99.0.0/16') && addresses('eth0').length === 1, 'the rest is gone')
    expect(route(undefined)?.gateway).toBe('10.5.0.1')
  })

  test('in documents: a bridge, its ports, rules and blackholes', async () => {
    say(
      '',
      'kind: BridgeConfig\nname: br0\nlinks: [eth0, eth1]\nstp: {enabled: true}\naddresses: [{address: 10.6.0.1/24}]\n',
      'kind: BlackholeRouteConfig\nname: 10.66.0.0/16\nmetric: 9\n',
      'kind: LinkConfig\nname: eth1\nmtu: 1450\n',
      'kind: RoutingRuleConfig\nname: "100"\nsrc: 10.6.0.0/24\ntable: "180"\n',
    )
    const bridge = await eventually(() => addresses('br0').length === 1 && node.link('br0'), 'the bridge has its address')
    expect(bridge).toMatchObject({ kind: 'bridge', data: { stpState: 1 } })
    await eventually(() => node.link('eth0')?.master === bridge.index, 'the first port')
    await eventually(() => node.link('eth1')?.master === bridge.index && node.link('eth1')?.mtu === 1450, 'the second port')
    expect(await eventually(() => route('10.66.0.0/16'), 'the blackhole')).toMatchObject({ type: 6, priority: 9 })
    expect(await eventually(() => node.rules().find(({ priority }) => priority === 100), 'the rule')).toMatchObject({
      source: '10.6.0.0/24',
      table: 180,
    })
    await eventually(() => machine.store.get(LinkStatus, 'br0')?.spec.bridgeMaster?.stp?.enabled, 'its status')
    say('')
    await eventually(
      () => node.link('br0') === undefined && !route('10.66.0.0/16') && !node.rules().some(({ priority }) => priority === 100),
      'all gone',
    )
    await eventually(() => node.link('eth0')?.master === undefined, 'the first port is free')
  })
})

test('what is removed by hand comes back; what is foreign stays', async () => {
  const eth0 = node.indexOf('eth0')
  node.addBridge({ name: 'cni0', up: true })
  node.addAddress({ link: eth0, address: '10.5.0.77/24' })
  say(
    '',
    'kind: LinkConfig\nname: eth0\naddresses: [{address: 10.5.0.2/24}]\nroutes: [{gateway: 10.5.0.1}]\n',
    'kind: BridgeConfig\nname: br0\naddresses: [{address: 10.6.0.1/24}]\n',
  )
  await eventually(() => route(undefined) && addresses('br0').length === 1, 'the configuration')
  node.removeLink('br0')
  node.removeAddress({ link: eth0, address: '10.5.0.2/24' })
  await eventually(() => addresses('br0').length === 1 && addresses('eth0').includes('10.5.0.2/24') && route(undefined), 'it is back')
  node.setLink('eth0', { up: false })
  await eventually(() => route(undefined), 'the link is up again, with its route')
  node.putRoute({ destination: '10.77.0.0/16', gateway: '10.5.0.5', link: eth0, priority: 3, protocol: 186 })
  say('')
  await eventually(() => !addresses('eth0').includes('10.5.0.2/24') && !node.link('br0'), 'ours is gone')
  expect(addresses('eth0')).toEqual(['10.5.0.77/24'])
  expect(node.link('cni0')).toBeDefined()
  expect(route('10.77.0.0/16')).toMatchObject({ protocol: 186 })
})

test('a route that is given before its gateway can be reached comes as soon as it can', async () => {
  say('', 'kind: LinkConfig\nname: eth0\nroutes: [{destination: 10.88.0.0/16, gateway: 10.9.0.1}]\n')
  await eventually(() => machine.entries.some(({ message }) => message === 'route waits for its link'), 'it waits')
  node.addAddress({ link: node.indexOf('eth0'), address: '10.9.0.2/24' })
  await eventually(() => route('10.88.0.0/16'), 'the route')
})

test("another's route to the same place is reported, not replaced", async () => {
  const eth1 = node.indexOf('eth1')
  node.setLink('eth1', { up: true })
  node.addAddress({ link: eth1, address: '10.7.0.2/24' })
  node.putRoute({ destination: '10.88.0.0/16', gateway: '10.7.0.1', link: eth1, priority: 1024, protocol: 186 })
  say('', 'kind: LinkConfig\nname: eth0\naddresses: [{address: 10.5.0.2/24}]\nroutes: [{destination: 10.88.0.0/16, gateway: 10.5.0.1}]\n')
  const entry = await eventually(
    () => machine.entries.find(({ fields }) => String(fields.error).includes('protocol "bgp" has one')),
    'a word about it',
  )
  expect(String(entry.fields.error)).toContain('give yours another metric')
  expect(route('10.88.0.0/16')).toMatchObject({ gateway: '10.7.0.1' })
})

test('a thousand addresses and routes are there and go', async () => {
  const many = Array.from({ length: 1000 }, (_, n) => `10.${32 + (n >> 8)}.${n & 255}`)
  say(
    '',
    `kind: LinkConfig\nname: eth0\naddresses:\n${many.map((net) => `  - {address: ${net}.1/24}\n`).join('')}routes:\n${many.map((net, n) => `  - {destination: 172.${16 + (n >> 8)}.${n & 255}.0/24, gateway: ${net}.9}\n`).join('')}`,
  )
  const begin = performance.now()
  await eventually(
    () => addresses('eth0').length === 1000 && node.routes().filter(({ protocol }) => protocol === 4).length === 1000,
    'all',
    60_000,
  )
  console.log(`1,000 addresses and 1,000 routes after ${Math.round(performance.now() - begin)} ms`)
  say('')
  await eventually(() => addresses('eth0').length === 0, 'none', 60_000)
})

test('changes that come faster than anybody hears them are not missed', async () => {
  const eth0 = node.indexOf('eth0')
  const stop = new AbortController()
  let lost = 0
  const addressGroup = 5 // RTNLGRP_IPV4_IFADDR
  const listening = (async () => {
    for await (const event of watchNetlink(netlinkProtocol.route, [addressGroup], { netns: `${spaces.folder}/node`, signal: stop.signal }))
      if (event.lost) lost++
  })()
  await eventually(() => lost === 1, 'the listener has begun, with nothing known from before')
  const statuses = () => machine.store.list(AddressStatus).filter(({ spec }) => spec.address.startsWith('10.200.')).length
  const all = Array.from({ length: 8000 }, (_, n) => `10.200.${n >> 8}.${n & 255}/32`)
  // Nothing is heard while this goes on: the kernel's buffer for us overflows.
  for (const address of all) node.addAddress({ link: eth0, address })
  await eventually(() => lost > 1, 'the kernel reports a loss')
  await eventually(() => statuses() === all.length, 'all is known')
  for (const address of all.slice(0, -1)) node.removeAddress({ link: eth0, address })
  await eventually(() => statuses() === 1, 'all but one is known to be gone')
  stop.abort()
  await listening
  expect(machine.entries.filter(({ message }) => message === 'network watch failed, will retry')).toEqual([])
})
