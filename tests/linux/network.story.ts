import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createNetns, inNetns, removeNetns } from '../../src/linux/net/netns.ts'
import { type Network, openNetwork, watchNetwork } from '../../src/linux/net/rtnetlink.ts'
import { namespaceOf } from './kernel-state.ts'

/** Two namespaces of our own stand for host and node; nothing outside them is touched. */
let folder = ''
let host: Network
let node: Network
const hostNs = () => join(folder, 'host')
const nodeNs = () => join(folder, 'node')

beforeEach(() => {
  folder = mkdtempSync('/run/ichor-story-')
  createNetns(hostNs())
  createNetns(nodeNs())
  host = openNetwork({ netns: hostNs() })
  node = openNetwork({ netns: nodeNs() })
})
afterEach(() => {
  host.close()
  node.close()
  removeNetns(hostNs())
  removeNetns(nodeNs())
  rmSync(folder, { recursive: true })
})

function wire(): void {
  host.addBridge({ name: 'br0', up: true, settings: { stpState: 0 } })
  const bridge = host.indexOf('br0')
  host.addAddress({ address: '10.77.0.1/24', link: bridge })
  host.addVeth({
    name: 'port0',
    master: bridge,
    up: true,
    peer: { name: 'eth0', mtu: 1400, hardwareAddress: '02:00:00:00:00:05', up: true },
    peerNetns: nodeNs(),
  })
  const link = node.indexOf('eth0')
  node.addAddress({ address: '10.77.0.2/24', link })
  node.putRoute({ gateway: '10.77.0.1', link })
}

describe('a node on a bridge', () => {
  test('has its link, address and default route, and reaches the host', async () => {
    wire()
    expect(host.link('port0')).toMatchObject({
      kind: 'veth',
      slaveKind: 'bridge',
      master: host.indexOf('br0'),
      linkNamespace: host.namespaceId(nodeNs()),
    })
    expect(node.link('eth0')).toMatchObject({ mtu: 1400, hardwareAddress: '02:00:00:00:00:05', kind: 'veth' })
    expect(node.addresses().map(({ address }) => address)).toContain('10.77.0.2/24')
    expect(node.routes().find(({ destination, table, family }) => !destination && table === 254 && family === 2)?.gateway).toBe('10.77.0.1')
    const server = inNetns(hostNs(), () =>
      Bun.listen({ hostname: '10.77.0.1', port: 0, socket: { open: (socket) => void socket.end('hello'), data() {} } }),
    )
    const heard = Promise.withResolvers<string>()
    inNetns(nodeNs(), () => {
      Bun.connect({
        hostname: '10.77.0.1',
        port: server.port,
        socket: { data: (_, data) => heard.resolve(data.toString()), error: (_, error) => heard.reject(error) },
      }).catch(heard.reject)
      return undefined
    })
    expect(await heard.promise).toBe('hello')
    server.stop(true)
  })

  test('gets an event for every change', async () => {
    const controller = new AbortController()
    const seen = new Set<string>()
    for await (const changed of watchNetwork(['links', 'addresses', 'routes'], { netns: nodeNs(), signal: controller.signal })) {
      const first = seen.size === 0
      for (const name of changed) seen.add(first ? 'first' : name)
      if (first) wire()
      if (seen.size === 4) controller.abort()
    }
    expect([...seen].sort()).toEqual(['addresses', 'first', 'links', 'routes'])
  })

  test('is removed with its namespace, and removing a missing one is no error', async () => {
    wire()
    node.removeAddress({ address: '10.77.0.2/24', link: node.indexOf('eth0') })
    node.removeAddress({ address: '10.77.0.2/24', link: node.indexOf('eth0') })
    node.removeRoute({ gateway: '10.77.0.1', link: node.indexOf('eth0') })
    host.removeLink('port0')
    host.removeLink('port0')
    expect(node.link('eth0')).toBeUndefined()
    host.removeLink('br0')
    expect(host.links().map(({ name }) => name)).not.toContain('br0')
  })
})

test("refusals come in the kernel's own words", () => {
  expect(() => node.addRoute({ destination: '10.0.0.0/8', gateway: '10.1.2.3' })).toThrow('ENETUNREACH (Nexthop has invalid gateway)')
  expect(() => node.addLink({ name: 'x0', kind: 'nosuchkind' })).toThrow('EOPNOTSUPP (Unknown device type)')
  expect(() => node.indexOf('eth9')).toThrow('find link "eth9": ENODEV')
})

test('rules, tables and neighbours are added and removed', () => {
  wire()
  const link = node.indexOf('eth0')
  node.putRoute({ destination: '10.88.0.0/16', gateway: '10.77.0.1', table: 1000, priority: 5, mtu: 1300 })
  node.putRoute({ destination: '10.88.0.0/16', gateway: '10.77.0.9', table: 1000, priority: 5 })
  expect(node.routes().filter(({ table }) => table === 1000)).toMatchObject([{ gateway: '10.77.0.9', priority: 5 }])
  const rule = { priority: 100, source: '10.77.0.0/16', table: 1000, mark: 5, mask: 255 }
  node.addRule(rule)
  expect(node.rules().find(({ priority }) => priority === 100)).toMatchObject(rule)
  expect(() => node.addRule(rule)).toThrow('EEXIST')
  node.removeRule(rule)
  node.removeRule(rule)
  const neighbour = { link, address: '10.77.0.9', hardwareAddress: '02:00:00:00:00:99' }
  node.putNeighbour(neighbour)
  expect(node.neighbours().find(({ address }) => address === '10.77.0.9')).toMatchObject(neighbour)
  node.removeNeighbour(neighbour)
  node.removeNeighbour(neighbour)
})

test('entering a namespace lasts for the function, also when it throws', () => {
  const home = namespaceOf('self', 'net')
  expect(() =>
    inNetns(nodeNs(), () => {
      throw new Error('inside')
    }),
  ).toThrow('inside')
  expect(namespaceOf('self', 'net')).toBe(home)
  removeNetns(nodeNs())
  removeNetns(nodeNs())
  expect(() => inNetns(nodeNs(), () => 1)).toThrow('ENOENT')
})
