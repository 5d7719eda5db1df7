import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { readAddress, writeAddress } from '../../../src/wire/netlink/address.ts'
import { linkName, readLink, writeLink } from '../../../src/wire/netlink/link.ts'
import { readNeighbour, writeNeighbour } from '../../../src/wire/netlink/neighbour.ts'
import { readRoute, routeType, writeRoute } from '../../../src/wire/netlink/route.ts'
import { readRule, writeRule } from '../../../src/wire/netlink/rule.ts'
import { runs } from '../../support/runs.ts'
import { type Captured, captured } from './captured.ts'

const readers: Record<string, (body: Uint8Array) => unknown> = {
  links: readLink,
  addresses: readAddress,
  routes: readRoute,
  rules: readRule,
  neighbours: readNeighbour,
}

describe('messages of a kernel', () => {
  const links = captured('links').map(({ body }) => readLink(body))
  const index = (name: string) => links.find((link) => link.name === name)?.index ?? -1

  test('a bridge with a veth port, its peer, and a VXLAN link', () => {
    expect(links.map(({ name, kind, slaveKind }) => [name, kind, slaveKind])).toEqual(
      expect.arrayContaining([
        ['lo', '', ''],
        ['br0', 'bridge', ''],
        ['v0', 'veth', 'bridge'],
        ['v1', 'veth', ''],
        ['vx0', 'vxlan', ''],
      ]),
    )
    const port = links.find(({ name }) => name === 'v0')
    expect(port).toMatchObject({ master: index('br0'), parent: index('v1'), hardwareAddress: '02:00:00:00:00:02', mtu: 1500 })
    expect(links.find(({ name }) => name === 'vx0')?.data).toMatchObject({ id: 7, port: 4789, local: '10.1.0.2', link: index('v1') })
  })

  test('addresses with label, broadcast and flags', () => {
    const addresses = captured('addresses').map(({ body }) => readAddress(body))
    expect(addresses.find(({ address }) => address === '10.1.0.2/24')).toMatchObject({
      family: 2,
      label: 'v1:a',
      broadcast: '10.1.0.255',
      link: index('v1'),
      validLifetime: Number.POSITIVE_INFINITY,
    })
    expect(addresses.find(({ address }) => address === 'fd00:1::2/64')).toMatchObject({ family: 10, flags: 0x82 })
  })

  test('a default route, one in a table beyond 255, and one with two next hops', () => {
    const routes = captured('routes').map(({ body }) => readRoute(body))
    expect(routes.find(({ family, table, destination }) => family === 2 && table === 254 && !destination)).toMatchObject({
      gateway: '10.1.0.1',
      preferredSource: '10.1.0.2',
      mtu: 1400,
      type: routeType.unicast,
    })
    expect(routes.find(({ destination }) => destination === '10.9.0.0/16')).toMatchObject({ table: 1000, priority: 7 })
    expect(routes.find(({ destination }) => destination === '10.8.0.0/16')?.hops).toEqual([
      { link: index('v1'), gateway: '10.1.0.1', weight: 2, flags: 0 },
      { link: index('v1'), gateway: '10.1.0.3', weight: 1, flags: 0 },
    ])
  })

  test('a rule and a neighbour', () => {
    const rules = captured('rules').map(({ body }) => readRule(body))
    expect(rules.find(({ priority }) => priority === 50)).toMatchObject({
      source: '10.1.0.0/16',
      table: 1000,
      mark: 7,
      mask: 255,
      inputLink: 'v1',
    })
    const neighbours = captured('neighbours').map(({ body }) => readNeighbour(body))
    expect(neighbours.find(({ address }) => address === '10.1.0.1')).toMatchObject({ hardwareAddress: '02:00:00:00:00:09', state: 128 })
  })

  test.each(Object.keys(readers))('of %s, truncated anywhere or with any byte changed, parses or fails with a DecodeError', (name) => {
    const read = readers[name]
    const bodies = captured(name as Captured).map(({ body }) => body)
    const attempt = (body: Uint8Array) => {
      try {
        read?.(body)
      } catch (error) {
        expect(error).toBeInstanceOf(DecodeError)
      }
    }
    for (const body of bodies) for (let length = 0; length < body.length; length++) attempt(body.subarray(0, length))
    fc.assert(
      fc.property(fc.constantFrom(...bodies), fc.nat(), fc.nat(255), (body, at, value) => {
        const changed = body.slice()
        changed[at % changed.length] = value
        attempt(changed)
      }),
      { numRuns: runs(500) },
    )
  })
})

describe('requests', () => {
  test('for a link contain what was requested', () => {
    expect(
      readLink(writeLink({ name: 'eth0', mtu: 1400, up: true, master: 3, hardwareAddress: '02:00:00:00:00:05', alias: 'first' })),
    ).toMatchObject({
      name: 'eth0',
      mtu: 1400,
      flags: 1,
      master: 3,
      hardwareAddress: '02:00:00:00:00:05',
      alias: 'first',
    })
    const bond = { mode: 4, miimon: 100, arpIpTargets: ['10.0.0.1', '10.0.0.2'], lacpRate: 1, adActorSystem: '02:00:00:00:00:07' }
    expect(readLink(writeLink({ name: 'bond0', kind: 'bond', data: bond }))).toMatchObject({ kind: 'bond', data: bond })
    expect(readLink(writeLink({ name: 'e.5', kind: 'vlan', parent: 2, data: { id: 5, protocol: 0x8100 } }))).toMatchObject({
      parent: 2,
      data: { id: 5, protocol: 0x8100 },
    })
  })

  test('for a link are refused when they are invalid for any kernel', () => {
    expect(() => writeLink({ name: 'a-name-far-too-long' })).toThrow('"a-name-far-too-long" is no link name')
    expect(() => writeLink({ kind: 'bridge', data: { colour: 1 } })).toThrow('link kind "bridge" has no setting "colour"')
    expect(() => writeLink({ hardwareAddress: 'x' })).toThrow('"x" is no hardware address')
    for (const name of ['', '.', '..', 'a b', 'a/b', 'a:b', 'é23456789012345']) expect(() => linkName(name)).toThrow(RangeError)
  })

  test('for addresses contain what was requested', () => {
    const desired = {
      address: '10.0.0.5/24',
      link: 4,
      broadcast: '10.0.0.255',
      label: 'eth0',
      flags: 0x200,
      scope: 253,
      priority: 9,
      validLifetime: 60,
      preferredLifetime: 30,
    }
    expect(readAddress(writeAddress(desired))).toMatchObject(desired)
    expect(() => writeAddress({ address: '10.0.0.5', link: 1 })).toThrow('"10.0.0.5" is no address with prefix length')
    expect(() => writeAddress({ address: '10.0.0.5/24', link: 1, peer: 'fd00::1' })).toThrow('no address of the same family')
  })

  test('for routes contain what was requested, in the family of the addresses', () => {
    const desired = { destination: 'fd00::/8', gateway: 'fe80::1', link: 2, table: 4000, priority: 100, mtu: 1280, advmss: 1220 }
    expect(readRoute(writeRoute(desired))).toMatchObject({ ...desired, family: 10, protocol: 4, type: 1 })
    expect(readRoute(writeRoute({ gateway: '10.0.0.1' }))).toMatchObject({ family: 2, destination: undefined, table: 254, scope: 0 })
    expect(readRoute(writeRoute({ destination: '10.0.0.0/8', link: 2 }))).toMatchObject({ scope: 253 })
    expect(() => writeRoute({ destination: '10.0.0.0/40' })).toThrow('"10.0.0.0/40" is no prefix')
  })

  test('for an IPv4 route with an IPv6 gateway use RTA_VIA', () => {
    expect(readRoute(writeRoute({ destination: '10.0.0.0/8', gateway: 'fe80::1', link: 2 }))).toMatchObject({
      family: 2,
      gateway: 'fe80::1',
    })
  })

  test('for rules and neighbours contain what was requested', () => {
    const rule = { source: '10.0.0.0/8', priority: 100, table: 1000, mark: 5, mask: 255, outputLink: 'eth0', suppressPrefixLength: 0 }
    expect(readRule(writeRule(rule))).toMatchObject({ ...rule, family: 2, action: 1 })
    const neighbour = { link: 3, family: 7, hardwareAddress: '02:00:00:00:00:08', address: '10.0.0.9', flags: 2, state: 128 }
    expect(readNeighbour(writeNeighbour(neighbour))).toMatchObject(neighbour)
  })
})
