import { expect, test } from 'bun:test'
import { addressBytes } from '../../../src/programs/discovery/methods.ts'
import { type Change, limits, Registry, RegistryError } from '../../../src/programs/discovery/registry.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const minute = 60_000

function registry() {
  const clock = { now: 0 }
  return { clock, registry: new Registry(() => clock.now) }
}

test('members of one cluster are not seen by another', () => {
  const { registry: all } = registry()
  all.update('a', 'n1', { data: bytes('x'), ttl: minute })
  expect(all.list('a')).toEqual([{ id: 'n1', data: bytes('x'), endpoints: [] }])
  expect(all.list('b')).toEqual([])
})

test('data left out stays, endpoints add up', () => {
  const { registry: all } = registry()
  all.update('a', 'n1', { data: bytes('x'), endpoints: [bytes('1')], ttl: minute })
  all.update('a', 'n1', { endpoints: [bytes('2'), bytes('1')], ttl: minute })
  expect(all.list('a')).toEqual([{ id: 'n1', data: bytes('x'), endpoints: [bytes('2'), bytes('1')] }])
})

test('a member that falls silent is forgotten and the others are told', () => {
  const { clock, registry: all } = registry()
  const heard: Change[] = []
  all.update('a', 'n1', { data: bytes('x'), ttl: minute })
  all.subscribe('a', (change) => heard.push(change))
  clock.now = minute - 1
  all.sweep()
  expect(all.list('a')).toHaveLength(1)
  clock.now = minute
  all.sweep()
  expect(all.list('a')).toEqual([])
  expect(heard).toEqual([{ affiliate: { id: 'n1', data: bytes('x'), endpoints: [] }, deleted: true }])
})

test('only changes are told, and nothing after the end of the subscription', () => {
  const { registry: all } = registry()
  const heard: Change[] = []
  const stop = all.subscribe('a', (change) => heard.push(change))
  all.update('a', 'n1', { data: bytes('x'), ttl: minute })
  all.update('a', 'n1', { data: bytes('x'), ttl: minute })
  all.remove('a', 'n1')
  stop()
  all.update('a', 'n1', { data: bytes('y'), ttl: minute })
  expect(heard.map(({ deleted }) => deleted)).toEqual([false, true])
})

test('of endpoints the last named are kept', () => {
  const { registry: all } = registry()
  const heard: Change[] = []
  all.subscribe('a', (change) => heard.push(change))
  for (let n = 0; n <= limits.endpoints; n++) all.update('a', 'n1', { endpoints: [bytes('first'), bytes(`${n}`)], ttl: minute })
  const kept = all.list('a')[0]!.endpoints.map((endpoint) => Buffer.from(endpoint).toString())
  expect([kept.length, kept.includes('first'), kept.includes('0'), kept.at(-1)]).toEqual([
    limits.endpoints,
    true,
    false,
    `${limits.endpoints}`,
  ])
  expect(heard).toHaveLength(limits.endpoints + 1)
})

test('everything has a bound', () => {
  const { registry: all } = registry()
  const refused = (act: () => void) => expect(act).toThrow(RegistryError)
  refused(() => all.update('', 'n', { ttl: minute }))
  refused(() => all.update('a', 'n'.repeat(limits.id + 1), { ttl: minute }))
  refused(() => all.update('a', 'n', { ttl: 0 }))
  refused(() => all.update('a', 'n', { ttl: limits.ttl + 1 }))
  refused(() => all.update('a', 'n', { data: new Uint8Array(limits.data + 1), ttl: minute }))
  refused(() => all.update('a', 'n', { endpoints: [new Uint8Array(limits.endpoint + 1)], ttl: minute }))
  for (let i = 0; i < limits.affiliates; i++) all.update('a', `n${i}`, { ttl: minute })
  refused(() => all.update('a', 'one more', { ttl: minute }))
})

test.each([
  ['10.5.0.2', [10, 5, 0, 2]],
  ['10.5.0.2:4711', [10, 5, 0, 2]],
  ['::ffff:10.5.0.2', [10, 5, 0, 2]],
  ['fd00::2', [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]],
  ['[fd00::2]:4711', [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]],
  ['unix', []],
])('the address %s as bytes', (peer, expected) => {
  expect([...addressBytes(peer)]).toEqual(expected)
})
