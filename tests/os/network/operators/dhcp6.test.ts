import { expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import { Dhcp6Client, type Dhcp6Lease } from '../../../../src/os/network/operators/dhcp6-client.ts'
import { Dhcp6Meaning, type Dhcp6Message, dhcp6Option, dhcp6Status, dhcp6Type, writeOption } from '../../../../src/wire/dhcp/dhcp6.ts'
import { parseIp } from '../../../../src/wire/ip.ts'

const duid = Buffer.from([0, 3, 0, 1, 2, 0, 0, 0, 0, 1])
const iaid = 7
interface Answer {
  type: number
  address?: string | undefined
  rapid?: boolean
  preference?: number
  server?: number
  refuse?: number
}

const numbers = (...values: number[]) => {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, index * 4)
  return bytes
}

function link(answer: (type: number, message: Dhcp6Message, now: number) => Answer[], { others = [] as string[] } = {}) {
  let now = 0
  const heard: string[] = []
  const recorded: (string | undefined)[] = []
  const leases: Dhcp6Lease[] = []
  const inbox: Dhcp6Message[] = []
  const stop = new AbortController()
  const names = Object.fromEntries(Object.entries(dhcp6Type).map(([name, number]) => [number, name]))
  const client = new Dhcp6Client({
    duid,
    association: iaid,
    log: silent,
    random: () => 0,
    clock: {
      now: () => now,
      sleep: async (milliseconds) => {
        now += milliseconds
      },
    },
    transport: {
      send(message) {
        const server = new Dhcp6Meaning(message).serverId
        heard.push(`${Math.round(now / 1000)}s ${names[message.type]}${server ? ` ${server[0]}` : ''}`)
        for (const { type, address, rapid, preference, server: who = 1, refuse } of answer(message.type, message, now)) {
          const status = refuse === undefined ? [] : [writeOption(dhcp6Option.status, Buffer.from([0, refuse, 110, 111]))]
          const life = numbers(100, 1000)
          const inner = address ? [writeOption(dhcp6Option.iaAddress, Buffer.concat([parseIp(address)!, life]))] : []
          inbox.push({
            type,
            transaction: message.transaction,
            options: [
              { number: dhcp6Option.clientId, value: duid },
              { number: dhcp6Option.serverId, value: Buffer.from([who]) },
              { number: dhcp6Option.iaNa, value: Buffer.concat([numbers(iaid, 50, 80), ...inner, ...status]) },
              ...(rapid ? [{ number: dhcp6Option.rapidCommit, value: new Uint8Array() }] : []),
              ...(preference === undefined ? [] : [{ number: dhcp6Option.preference, value: Buffer.from([preference]) }]),
            ],
          })
        }
      },
      async receive(_transaction, milliseconds) {
        const found = inbox.shift()
        if (!found) now += milliseconds
        return found
      },
      taken: async (addresses) => others.some((address) => addresses.includes(address)),
    },
  })
  return {
    async run(count: number, previous?: Dhcp6Lease) {
      await client.run(
        (lease) => {
          recorded.push(lease?.addresses.join())
          if (lease) leases.push(lease)
          if (recorded.length === count) stop.abort()
        },
        stop.signal,
        previous,
      )
      return { heard, recorded, leases }
    },
  }
}

const { solicit, advertise, request, confirm, renew, reply } = dhcp6Type

test('a rapid commit is accepted, and renewed at T1', async () => {
  const { heard, recorded } = await link((type) => [{ type: reply, address: 'fd00::5', rapid: type === solicit }]).run(2)
  expect(recorded).toEqual(['fd00::5', 'fd00::5'])
  expect(heard).toEqual(['0s solicit', '50s renew 1'])
})

test('of several servers the one with the highest preference is used', async () => {
  const { heard } = await link((type) =>
    type === solicit
      ? [
          { type: advertise, address: 'fd00::5', preference: 1, server: 1 },
          { type: advertise, address: 'fd00::6', preference: 9, server: 2 },
        ]
      : [{ type: reply, address: 'fd00::6', server: 2 }],
  ).run(1)
  expect(heard).toEqual(['0s solicit', '1s request 2'])
})

test('a server without addresses is ignored, and requests back off', async () => {
  const { heard } = await link((type, _m, now) => {
    if (now > 30_000) return [{ type: reply, address: 'fd00::5', rapid: true }]
    return type === solicit && now < 1 ? [{ type: advertise, refuse: dhcp6Status.noAddresses }] : []
  }).run(1)
  expect(heard.map((line) => Number.parseInt(line, 10))).toEqual([0, 1, 3, 6, 12, 22, 41])
})

test('a lease that its server does not renew is rebound, and dropped when it expires', async () => {
  const { heard, recorded } = await link((type, _m, now) =>
    type === solicit && (now < 1 || now > 900_000) ? [{ type: reply, address: now < 1 ? 'fd00::5' : 'fd00::9', rapid: true }] : [],
  ).run(3)
  expect(recorded).toEqual(['fd00::5', undefined, 'fd00::9'])
  expect(heard.filter((line) => line.includes('renew'))[0]).toBe('50s renew 1')
  expect(heard.filter((line) => line.includes('rebind'))[0]).toBe('80s rebind')
  expect(heard.find((line) => line.includes('solicit') && line !== '0s solicit')).toBe('1000s solicit')
})

test('a previous lease is confirmed, and dropped on a different link', async () => {
  const [before] = (await link(() => [{ type: reply, address: 'fd00::5', rapid: true }]).run(1)).leases
  const previous = { ...before!, renewAt: 500_000, rebindAt: 600_000, expiresAt: 900_000 }
  expect((await link(() => [{ type: reply }]).run(1, previous)).heard).toEqual(['0s confirm'])
  const moved = await link((type) =>
    type === confirm
      ? [{ type: reply, address: 'fd00::5' }]
      : type === renew
        ? [{ type: reply, refuse: dhcp6Status.noBinding }]
        : [{ type: reply, address: 'fd00:9::5', rapid: type === solicit }],
  ).run(3, previous)
  expect(moved.recorded).toEqual(['fd00::5', undefined, 'fd00:9::5'])
  expect(request).toBe(3)
})

test('an address held by another station is declined, and another one requested', async () => {
  const { decline } = dhcp6Type
  let offered = 4
  const { heard, recorded } = await link(
    (type) => {
      if (type === solicit) offered++
      return [{ type: reply, address: type === decline ? undefined : `fd00::${offered}`, rapid: type === solicit }]
    },
    { others: ['fd00::5'] },
  ).run(3)
  expect(recorded).toEqual(['fd00::5', undefined, 'fd00::6'])
  expect(heard).toEqual(['0s solicit', '0s decline 1', '10s solicit'])
})
