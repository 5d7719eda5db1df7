import { expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import { findingsOf } from '../../../../src/os/network/operators/dhcp4.ts'
import { Dhcp4Client, type Dhcp4Lease, type Dhcp4Transport, type Recipient } from '../../../../src/os/network/operators/dhcp4-client.ts'
import { type Dhcp4Message, dhcp4Type } from '../../../../src/wire/dhcp/dhcp4.ts'
import { Dhcp4Options, dhcp4Option, optionAddresses, optionNumber } from '../../../../src/wire/dhcp/dhcp4-options.ts'
import { selectedAddresses } from './dhcp-peer.ts'

const mac = '02:00:00:00:00:01'
const server = '10.0.0.1'
type Answer = { type: number; address?: string; more?: [number, Uint8Array][] } | undefined

/** A client, a server that answers by a function, and a clock that stands still but for waiting. */
function link(answer: (type: number, message: Dhcp4Message, to: Recipient, now: number) => Answer, taken: string[] = []) {
  let now = 0
  const heard: string[] = []
  const recorded: (string | undefined)[] = []
  const inbox: { message: Dhcp4Message; station: string }[] = []
  const stop = new AbortController()
  const clock = {
    now: () => now,
    sleep: async (milliseconds: number) => {
      now += milliseconds
    },
  }
  const names = Object.fromEntries(Object.entries(dhcp4Type).map(([name, number]) => [number, name]))
  const transport: Dhcp4Transport = {
    send(message, to) {
      const options = new Dhcp4Options(message.options)
      const requested = selectedAddresses(message.options.get(dhcp4Option.requestedAddress)) || message.clientAddress
      heard.push(`${Math.round(now / 1000)}s ${names[options.type ?? 0]} ${requested} ${to === 'everybody' ? 'everybody' : to.address}`)
      const reply = answer(options.type ?? 0, message, to, now)
      if (!reply) return
      const given: [number, Uint8Array][] = [
        [dhcp4Option.messageType, optionNumber(reply.type, 1)],
        [dhcp4Option.server, optionAddresses(server)],
        [dhcp4Option.leaseTime, optionNumber(3600, 4)],
        [dhcp4Option.subnetMask, optionAddresses('255.255.255.0')],
        ...(reply.more ?? []),
      ]
      inbox.push({
        station: '02:00:00:00:00:99',
        message: { ...message, operation: 'reply', yourAddress: reply.address ?? '0.0.0.0', options: new Map(given) },
      })
    },
    async receive(transaction, milliseconds) {
      const found = inbox.shift()
      if (found?.message.transaction === transaction) return found
      now += milliseconds
      return undefined
    },
    taken: async (address) => taken.includes(address),
  }
  const client = new Dhcp4Client({
    transport,
    clock,
    log: silent,
    random: () => 0.5,
    settings: { hardwareAddress: mac, clientIdentifier: 'mac', skipHostname: false },
  })
  const leases: Dhcp4Lease[] = []
  const run = async (count: number, previous?: Dhcp4Lease) => {
    await client.run(
      (lease) => {
        recorded.push(lease?.address)
        if (lease) leases.push(lease)
        if (recorded.length === count) stop.abort()
      },
      stop.signal,
      previous,
    )
    return { heard, recorded, leases, now }
  }
  return { run }
}

const { discover, offer, request, ack, nak } = dhcp4Type
const grant =
  (address: string) =>
  (type: number): Answer =>
    type === discover ? { type: offer, address } : type === request ? { type: ack, address } : undefined

test('a lease is discovered, requested, and renewed with its server at half its lifetime', async () => {
  const { heard, recorded } = await link(grant('10.0.0.5')).run(3)
  expect(recorded).toEqual(['10.0.0.5/24', '10.0.0.5/24', '10.0.0.5/24'])
  expect(heard).toEqual([
    '0s discover 0.0.0.0 everybody',
    '0s request 10.0.0.5 everybody',
    '1800s request 10.0.0.5 10.0.0.1',
    '3600s request 10.0.0.5 10.0.0.1',
  ])
})

test('requests to a silent server back off', async () => {
  let count = 0
  const { heard } = await link((type) => (++count > 9 ? grant('10.0.0.5')(type) : undefined)).run(1)
  expect(heard.slice(0, 9).map((line) => Number.parseInt(line, 10))).toEqual([0, 1, 2, 4, 8, 16, 32, 64, 128])
})

test('a lease that its server does not renew is rebound by broadcast, and dropped when it expires', async () => {
  const { heard, recorded, now } = await link((type, _message, _to, at) =>
    at < 1000 ? grant('10.0.0.5')(type) : at > 3_600_000 ? grant('10.0.0.9')(type) : undefined,
  ).run(3)
  expect(recorded).toEqual(['10.0.0.5/24', undefined, '10.0.0.9/24'])
  const renewals = heard.filter((line) => line.endsWith(' 10.0.0.1')).map((line) => Number.parseInt(line, 10))
  const rebinds = heard
    .filter((line) => line.endsWith('request 10.0.0.5 everybody'))
    .map((line) => Number.parseInt(line, 10))
    .slice(1)
  expect(renewals[0]).toBe(1800)
  expect(renewals.every((at, index) => index === 0 || at - renewals[index - 1]! >= 53)).toBe(true)
  expect(rebinds[0]).toBeGreaterThanOrEqual(3150)
  expect(now).toBeGreaterThanOrEqual(3_600_000)
})

test('a NAK restarts at discover, and a revoked lease is dropped', async () => {
  const refused = await link((type, _m, _t, now) => (type === request && now < 100 ? { type: nak } : grant('10.0.0.5')(type))).run(1)
  expect(refused.heard.map((line) => line.split(' ')[1])).toEqual(['discover', 'request', 'discover', 'request'])
  const back = await link((type, _m, to) => (to !== 'everybody' ? { type: nak } : grant('10.0.0.5')(type))).run(2)
  expect(back.recorded).toEqual(['10.0.0.5/24', undefined])
})

test('an address held by another station is declined', async () => {
  let given = 4
  const { heard, recorded } = await link(
    (type, message) => {
      if (type === discover) return { type: offer, address: `10.0.0.${++given}` }
      return type === request ? { type: ack, address: selectedAddresses(message.options.get(dhcp4Option.requestedAddress)) } : undefined
    },
    ['10.0.0.5'],
  ).run(1)
  expect(recorded).toEqual(['10.0.0.6/24'])
  expect(heard[2]).toBe('0s decline 10.0.0.5 everybody')
  expect(Number.parseInt(heard[3]!, 10)).toBeGreaterThanOrEqual(10)
})

test('a previous lease is requested first, and kept without an answer', async () => {
  const previous = { ...(await link(grant('10.0.0.5')).run(1)).leases[0]!, renewAt: 5000, rebindAt: 6000, expiresAt: 9000 }
  const confirmed = await link(grant('10.0.0.5')).run(1, previous)
  expect(confirmed.heard).toEqual(['0s request 10.0.0.5 everybody'])
  expect((await link(() => undefined).run(1, previous)).recorded).toEqual(['10.0.0.5/24'])
  const moved = await link((type, _m, _t, now) => (now === 0 && type === request ? { type: nak } : grant('10.9.0.5')(type))).run(
    2,
    previous,
  )
  expect(moved.recorded).toEqual([undefined, '10.9.0.5/24'])
})

test('a lease becomes addresses, routes, names and servers', async () => {
  const more: [number, Uint8Array][] = [
    [dhcp4Option.routers, optionAddresses('10.0.0.254')],
    [dhcp4Option.routes, Buffer.from([0, 10, 9, 9, 9, 16, 172, 16, 10, 0, 0, 254])],
    [dhcp4Option.hostname, Buffer.from('node-1')],
    [dhcp4Option.domain, Buffer.from('example.org')],
    [dhcp4Option.nameServers, optionAddresses('10.0.0.2', '10.0.0.3')],
  ]
  const { leases } = await link((type) => ({ ...grant('10.0.0.5')(type)!, more })).run(1)
  const findings = findingsOf(leases[0]!, 'eth0', 512)
  expect(findings.routes.map(({ dst, gateway, scope, priority, src }) => [dst, gateway, scope, priority, src])).toEqual([
    ['10.9.9.9/32', '', 'link', 512, '10.0.0.5'],
    ['', '10.9.9.9', 'global', 512, '10.0.0.5'],
    ['172.16.0.0/16', '10.0.0.254', 'global', 512, '10.0.0.5'],
  ])
  expect(findings).toMatchObject({
    hostname: { hostname: 'node-1', domainname: 'example.org' },
    nameServers: ['10.0.0.2', '10.0.0.3'],
    searchDomains: ['example.org'],
  })
})
