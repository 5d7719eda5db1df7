import { expect, test } from 'bun:test'
import { addressBytes } from '../../../src/programs/discovery/methods.ts'
import { type Change, limits, Registry, RegistryError, type Watcher } from '../../../src/programs/discovery/registry.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const minute = 60_000

function registry() {
  const clock = { now: 0 }
  return { clock, registry: new Registry(() => clock.now) }
}

const watcher = (heard: Change[] = [], from = 'here', ended: string[] = []): Watcher => ({
  from,
  changed: (change) => heard.push(change),
  ended: ({ message }) => ended.push(message),
})

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

test('a silent member expires and the others are notified', () => {
  const { clock, registry: all } = registry()
  const heard: Change[] = []
  all.update('a', 'n1', { data: bytes('x'), ttl: minute })
  all.subscribe('a', watcher(heard))
  clock.now = minute - 1
  all.sweep()
  expect(all.list('a')).toHaveLength(1)
  clock.now = minute
  all.sweep()
  expect(all.list('a')).toEqual([])
  expect(heard).toEqual([{ affiliate: { id: 'n1', data: bytes('x'), endpoints: [] }, deleted: true }])
})

test('only changes are published, and nothing after the end of the subscription', () => {
  const { registry: all } = registry()
  const heard: Change[] = []
  const stop = all.subscribe('a', watcher(heard))
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
  all.subscribe('a', watcher(heard))
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

test('an address that fills the registry gives way to others, its longest unchanged cluster first', () => {
  const { clock, registry: all } = registry()
  const gone: Change[] = []
  for (let n = 0; n < limits.clusters; n++) {
    clock.now++
    all.update(`c${n}`, 'n1', { ttl: limits.ttl }, `greedy${n % 4}`)
  }
  all.update('c0', 'n1', { data: bytes('x'), ttl: limits.ttl }, 'greedy0')
  all.subscribe('c4', watcher(gone))
  all.update('new', 'n1', { ttl: limits.ttl }, 'newcomer')
  all.update('new 2', 'n1', { ttl: limits.ttl }, 'newcomer')
  expect(all.list('new')).toHaveLength(1)
  expect(['c0', 'c1', 'c4', 'c5', 'new', 'new 2'].filter((id) => all.list(id).length > 0)).toEqual(['c0', 'c5', 'new', 'new 2'])
  expect(gone.map(({ deleted }) => deleted)).toEqual([true])
  // The evicted address cannot take the place back: it would be the largest again.
  expect(() => all.update('c4', 'n1', { ttl: limits.ttl }, 'greedy0')).toThrow(`${limits.clusters} clusters are kept already`)
  all.remove('c9', 'n1')
  all.update('c4', 'n1', { ttl: limits.ttl }, 'greedy0')
  expect(gone.map(({ deleted }) => deleted)).toEqual([true, false])
})

test('addresses that hold no more than a newcomer would keep their clusters', () => {
  const { registry: all } = registry()
  for (let n = 0; n < limits.clusters; n++) all.update(`c${n}`, 'n1', { ttl: minute }, `address${n}`)
  expect(() => all.update('one more', 'n1', { ttl: minute }, 'newcomer')).toThrow(RegistryError)
})

test('a watch of a cluster without members takes no place of one with members, and sees them come', () => {
  const { registry: all } = registry()
  const heard: Change[] = []
  for (let n = 0; n < 64; n++) all.subscribe(`w${n}`, watcher(heard, `address${n % 4}`))
  for (let n = 0; n < limits.clusters; n++) all.update(`c${n}`, 'n1', { ttl: minute }, 'member')
  expect(heard).toEqual([])
  all.remove('c0', 'n1')
  all.update('w0', 'n1', { ttl: minute }, 'member')
  expect(heard.map(({ deleted }) => deleted)).toEqual([false])
})

test('an address watches few clusters without members, and its oldest watch gives way to a newcomer', () => {
  const { registry: all } = registry()
  const ended: string[] = []
  const watch = (id: string, from: string) => all.subscribe(id, watcher([], from, ended))
  for (let n = 0; n < limits.awaited; n++) watch(`w${n}`, `address${Math.floor(n / limits.awaitedByOne)}`)
  expect(() => watch('another', 'address0')).toThrow(`your address watches ${limits.awaitedByOne} clusters without members already`)
  watch('w0', 'address0')
  all.update('known', 'n1', { ttl: minute })
  watch('known', 'address0')
  expect(ended).toEqual([])
  const stop = watch('mine', 'newcomer')
  expect(ended).toHaveLength(2) // both watches of w0
  stop()
  watch('theirs', 'another')
  expect(ended).toHaveLength(2)
})

test.each([
  ['10.5.0.2', [10, 5, 0, 2]],
  ['10.5.0.2:4711', [10, 5, 0, 2]],
  ['::ffff:10.5.0.2', [10, 5, 0, 2]],
  ['fd00::2', [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]],
  ['[fd00::2]:4711', [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]],
  ['[fe80::2%eth0]:4711', [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]],
  ['unix', []],
])('the address %s as bytes', (peer, expected) => {
  expect([...addressBytes(peer)]).toEqual(expected)
})
