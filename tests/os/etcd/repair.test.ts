import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import type { EtcdClient, Member } from '../../../src/os/etcd/client.ts'
import { observeRepair } from '../../../src/os/etcd/controllers/repair.ts'
import { obstacleTo } from '../../../src/os/etcd/repair/conditions.ts'
import { readKept } from '../../../src/os/etcd/repair/kept.ts'
import { Repair } from '../../../src/os/etcd/repair/repair.ts'
import type { Verification } from '../../../src/os/etcd/repair/verdict.ts'
import { EtcdRepair } from '../../../src/os/etcd/resources/etcd-repair.ts'
import { EtcdSpec } from '../../../src/os/etcd/resources/etcd-spec.ts'
import { Diagnostic } from '../../../src/os/runtime/resources/diagnostic.ts'
import { Service } from '../../../src/os/runtime/resources/service.ts'
import { RpcError } from '../../../src/rpc/status.ts'
import type { RunContext } from '../../../src/supervise/definition.ts'
import { fakeTime } from '../../support/fake-time.ts'
import { memoryFiles } from '../k8s/machine.ts'

const member = (ID: string, isLearner = false, name = `cp-${ID}`): Member => ({
  ID,
  name,
  peerURLs: [`https://10.5.0.${ID}:2380`],
  clientURLs: [`https://10.5.0.${ID}:2379`],
  isLearner,
})
const spec = {
  name: 'cp-1',
  advertisedAddresses: ['10.5.0.1'],
  listenPeerAddresses: [],
  listenClientAddresses: [],
  image: 'etcd',
  extraArgs: {},
}
const damaged: Verification = { owner: { member: '1', cluster: '7' }, damage: [{ file: 'member/wal', problem: 'checksum is different' }] }
const whole: Verification = { owner: { member: '1', cluster: '7' }, damage: [], keys: { hash: 5, revision: 90, compacted: 10 } }

interface Situation {
  found?: Verification
  members?: Member[]
  /** Members that do not answer. */
  silent?: string[]
  /** Hash of the other members' keys. */
  hash?: number
  holder?: string
  alone?: boolean
  /** The members have no majority. */
  stuck?: boolean
}

/** A member of three whose etcd has exited by itself. */
function repairing(time: ReturnType<typeof fakeTime>, situation: Situation = {}) {
  const { members = [member('1'), member('2'), member('3')] } = situation
  const seen = { calls: [] as string[], events: [] as object[], verified: 0, notes: [] as string[] }
  const client = (own?: Member) =>
    ({
      async members() {
        if (situation.stuck) throw new RpcError('Unavailable', 'etcdserver: no leader')
        return members
      },
      async status() {
        if (own && situation.silent?.includes(own.ID)) throw new RpcError('Unavailable', 'connection refused')
        return { header: { clusterId: '7', memberId: own?.ID ?? '2' }, leader: '2' } as never
      },
      hashKv: async () => ({ hash: situation.hash ?? 5, compactRevision: 10 }) as never,
      claim: async (_: string, holder: string) => situation.holder ?? holder,
      release: async (_: string, holder: string) => void seen.calls.push(`release ${holder}`),
      remove: async (id: string) => void seen.calls.push(`remove ${id}`),
      close() {},
    }) as Partial<EtcdClient> as EtcdClient
  const store = new Store()
  const files = memoryFiles()
  files.contents.set('/var/lib/etcd/member/wal', 'the data')
  const repair = new Repair({
    store,
    files: files as never,
    clock: time.clock,
    log: silent,
    others: () => (situation.alone ? undefined : client()),
    at: client,
    async verify() {
      seen.verified++
      return situation.found ?? damaged
    },
    publish: (event) => void seen.events.push(event),
  })
  const run = async (end: { killed?: boolean }) => {
    const context = { signal: new AbortController().signal } as RunContext
    await (
      await repair.watching(async () => ({ description: '', exit: Promise.resolve({ ok: false, message: '', ...end }), kill() {} }))(
        context,
      )
    ).exit
  }
  const putAside = () => repair.putAside(spec, { signal: new AbortController().signal, note: (text) => void seen.notes.push(text) })
  return { situation, seen, store, files, repair, run, putAside, client }
}

test('damaged data is put aside and the member removed, once etcd has exited by itself', async () => {
  using time = fakeTime()
  const { seen, store, files, run, putAside } = repairing(time)
  expect(await putAside()).toBe(false)
  await run({ killed: true })
  expect(await putAside()).toBe(false)
  expect(seen.verified).toBe(0)
  await run({})
  expect(await putAside()).toBe(true)
  expect(seen.calls).toEqual(['remove 1'])
  expect([...files.contents.keys()].toSorted()).toEqual(['/var/lib/etcd.damaged/member/wal', '/var/lib/etcd.damaged/report.json'])
  expect(files.owners.get('/var/lib/etcd.damaged')).toMatchObject({ mode: 0o700 })
  expect(store.get(EtcdRepair, 'etcd')?.spec).toMatchObject({
    state: 'joining',
    reason: 'member/wal is damaged: checksum is different',
    kept: '/var/lib/etcd.damaged',
  })
  expect(seen.events).toEqual([
    { action: 0, member: 'cp-1', reason: 'member/wal is damaged: checksum is different', kept: '/var/lib/etcd.damaged' },
  ])
})

const refusals: [string, Situation, string][] = [
  ['no other node is known', { alone: true }, 'no other control plane node is known'],
  ['the others have no majority', { stuck: true }, 'have no majority (etcdserver: no leader)'],
  ['one of the two others does not answer', { silent: ['3'] }, '1 of the 2 other members answer, and 2 have to'],
  ['it is the only member', { members: [member('1')] }, 'a majority of 1 members needs this one'],
  ['there is one other member', { members: [member('1'), member('2')] }, 'a majority of 2 members needs this one'],
  ['another member joins', { members: [member('1'), member('2'), member('3'), member('4', true)] }, 'cp-4 is joining'],
  [
    'another member is added',
    { members: [member('1'), member('2'), member('3'), member('4', false, '')] },
    'member at https://10.5.0.4:2380',
  ],
  ['another member is repaired', { holder: 'cp-3' }, 'cp-3 is joining again'],
  ['the data is of another cluster', { found: { ...damaged, owner: { member: '9', cluster: '8' } } }, 'data of another cluster'],
]
test.each(refusals)('nothing is changed while %s, and it is reported', async (_, situation, words) => {
  using time = fakeTime()
  const { seen, store, files, run, putAside } = repairing(time, situation)
  await run({})
  expect(await putAside()).toBe(false)
  expect(seen.calls).toEqual([])
  expect([...files.contents.keys()]).toEqual(['/var/lib/etcd/member/wal'])
  expect(store.get(EtcdRepair, 'etcd')?.spec).toMatchObject({ state: 'waiting', kept: '' })
  expect(store.get(EtcdRepair, 'etcd')?.spec.waiting).toContain(words)
  expect(seen.notes.at(-1)).toContain(words)
})

test('whole data is kept, unless the cluster removed the member or all others have other keys', async () => {
  using time = fakeTime()
  const same = repairing(time, { found: whole })
  await same.run({})
  expect(await same.putAside()).toBe(false)
  expect(same.store.get(EtcdRepair, 'etcd')).toBeUndefined()

  const removed = repairing(time, { found: whole, members: [member('2'), member('3')] })
  await removed.run({})
  expect(await removed.putAside()).toBe(true)
  expect(removed.seen.calls).toEqual([])
  expect(removed.store.get(EtcdRepair, 'etcd')?.spec.reason).toContain('no member 0000000000000001 any more')

  const different = repairing(time, { found: whole, hash: 6 })
  await different.run({})
  expect(await different.putAside()).toBe(true)
  expect(different.store.get(EtcdRepair, 'etcd')?.spec.reason).toBe('its keys at revision 90 differ from those of the 2 other members')

  const undecided = repairing(time, { found: whole, hash: 6, silent: ['3'] })
  await undecided.run({})
  expect(await undecided.putAside()).toBe(false)
})

test('data is read once in five minutes, though etcd starts every few seconds, and the others are queried each time', async () => {
  using time = fakeTime()
  const { situation, seen, run, putAside } = repairing(time, { silent: ['3'] })
  for (let starts = 0; starts < 3; starts++) {
    await run({})
    expect(await putAside()).toBe(false)
  }
  expect(seen.verified).toBe(1)
  situation.silent = []
  await run({})
  expect(await putAside()).toBe(true)
})

test('data that is damaged again within minutes is left, since the disk may be failing', async () => {
  using time = fakeTime()
  const { seen, files, store, run, putAside } = repairing(time)
  await run({})
  expect(await putAside()).toBe(true)
  files.contents.set('/var/lib/etcd/member/wal', 'other data')
  await run({})
  expect(await putAside()).toBe(false)
  expect(store.get(EtcdRepair, 'etcd')?.spec.waiting).toContain('the disk may be failing')
  await time.pass(new Runtime(new Store(), { log: silent, clock: time.clock }), 601_000)
  await run({})
  expect(await putAside()).toBe(true)
  expect(files.contents.get('/var/lib/etcd.damaged/member/wal')).toBe('other data')
  expect(seen.calls).toEqual(['remove 1', 'remove 1'])
})

test('it is reported until the member votes, and the old data is deleted a day later', async () => {
  using time = fakeTime()
  const { seen, store, files, repair, run, putAside, client } = repairing(time)
  let learner = true
  const local = () => ({ ...client(), status: async () => ({ isLearner: learner }) as never }) as EtcdClient
  const runtime = new Runtime(store, { log: silent, clock: time.clock })
  runtime.register(observeRepair({ store, repair }, local))
  runtime.start()
  store.put(EtcdSpec, 'etcd', spec)
  await run({})
  await putAside()
  store.put(Service, 'etcd', { running: true, healthy: true, unknown: false })
  await time.pass(runtime, 5_000)
  expect(store.get(Diagnostic, 'etcd-data')?.spec.message).toContain('the member joins the others again')
  learner = false
  await time.pass(runtime, 5_000)
  expect(store.get(Diagnostic, 'etcd-data')).toBeUndefined()
  expect(store.get(EtcdRepair, 'etcd')?.spec.state).toBe('voting')
  expect(seen.calls).toContain('release cp-1')
  // As after a restart of the machine.
  store.destroy(EtcdRepair, 'etcd')
  repair.restore()
  expect(store.get(EtcdRepair, 'etcd')?.spec.state).toBe('voting')
  await time.pass(runtime, 5_000)
  expect(files.exists('/var/lib/etcd.damaged')).toBe(true)
  await time.pass(runtime, 86_400_000)
  expect(files.exists('/var/lib/etcd.damaged')).toBe(false)
  expect(store.get(EtcdRepair, 'etcd')).toBeUndefined()
  expect(seen.events.map((event) => (event as { action: number }).action)).toEqual([0, 1, 2])
  runtime.stop()
})

test('of five members three others have to answer', () => {
  const members = ['1', '2', '3', '4', '5'].map((id) => member(id))
  expect(obstacleTo(members[0], { members, answering: new Set(['2', '3', '4']) })).toBeUndefined()
  expect(obstacleTo(members[0], { members, answering: new Set(['1', '2', '3']) })).toContain(
    '2 of the 4 other members answer, and 3 have to',
  )
})

test('a report that cannot be read still counts', () => {
  const files = memoryFiles()
  expect(readKept(files)).toBeUndefined()
  files.contents.set('/var/lib/etcd.damaged/member/wal', '')
  files.contents.set('/var/lib/etcd.damaged/report.json', '{"reason":')
  expect(readKept(files)?.reason).toBe('its report cannot be read')
})
