import { expect, test } from 'bun:test'
import { makeClock } from '../../../src/cosi/clock.ts'
import { silent } from '../../../src/cosi/log.ts'
import type { EtcdClient, Member } from '../../../src/os/etcd/client.ts'
import { leaderLast, type MemberSize, nearlyFull, quotaOf, wasteful } from '../../../src/os/etcd/upkeep/plan.ts'
import { Upkeep } from '../../../src/os/etcd/upkeep/upkeep.ts'
import { RpcError } from '../../../src/rpc/status.ts'

const mebibyte = 1024 * 1024
const size = (name: string, of: Partial<MemberSize> = {}): MemberSize => ({
  id: name,
  name,
  leads: false,
  size: 100 * mebibyte,
  inUse: 10 * mebibyte,
  quota: 200 * mebibyte,
  ...of,
})

test('a member is wasteful when more than half of a database that is not small is free', () => {
  const members = [
    size('small', { size: 60 * mebibyte, inUse: mebibyte }),
    size('used', { inUse: 50 * mebibyte }),
    size('leader', { leads: true }),
    size('b'),
    size('a'),
  ]
  expect(wasteful(members).map(({ name }) => name)).toEqual(['a', 'b', 'leader'])
  expect(leaderLast(members).at(-1)?.name).toBe('leader')
})

test('a quota of 0 is etcd’s default, a negative one none', () => {
  expect([quotaOf(0), quotaOf(-1), quotaOf(5)]).toEqual([2 * 1024 * mebibyte, Number.POSITIVE_INFINITY, 5])
  expect(nearlyFull([size('a', { inUse: 170 * mebibyte }), size('b')]).map(({ name }) => name)).toEqual(['a'])
})

/** Members that are databases of a certain size; what is done to them is recorded. */
function etcdOf(names: readonly string[], options: { full?: boolean; data?: number; holder?: string; silent?: string } = {}) {
  const state = {
    done: [] as string[],
    leader: names[0] ?? '',
    full: options.full ?? false,
    holder: options.holder,
    silent: options.silent,
  }
  let elapsed = 0
  const sizes = new Map(names.map((name) => [name, { dbSize: 100 * mebibyte, dbSizeInUse: (options.data ?? 10) * mebibyte }]))
  const members: Member[] = names.map((name) => ({ ID: name, name, peerURLs: [], clientURLs: [], isLearner: false }))
  const client = (name: string): EtcdClient =>
    ({
      async status() {
        if (state.silent === name) throw new RpcError('Unavailable', 'no answer')
        return { header: { memberId: name, revision: 7 }, leader: state.leader, dbSizeQuota: 100 * mebibyte, ...sizes.get(name) }
      },
      members: async () => members,
      alarms: async () => (state.full ? [{ memberID: name, alarm: 1 }] : []),
      async claim(_name: string, node: string) {
        if (state.full) throw new RpcError('ResourceExhausted', 'etcdserver: mvcc: database space exceeded')
        state.holder ??= node
        return state.holder
      },
      get: async () => state.holder,
      async compact(revision: number) {
        state.done.push(`compact ${revision}`)
      },
      async moveLeader(heir: string) {
        state.leader = heir
        state.done.push(`leader ${heir}`)
      },
      async defragment() {
        state.done.push(`defragment ${name}`)
        const before = sizes.get(name)
        if (before) sizes.set(name, { ...before, dbSize: before.dbSizeInUse })
      },
      async disarm(only: string) {
        state.done.push(`disarm ${only}`)
        state.full = false
        return []
      },
      close() {},
    }) as unknown as EtcdClient
  const upkeep = new Upkeep({
    clock: makeClock({ elapsed: () => elapsed, now: () => new Date(0) }),
    log: silent,
    local: () => client(names[0] ?? ''),
    at: ({ name }) => client(name),
    publish: ({ action }) => void state.done.push(`event ${action}`),
  })
  const pass = (milliseconds: number) => {
    elapsed += milliseconds
  }
  return { state, round: () => upkeep.round(names[0] ?? ''), pass }
}

test('one member is defragmented in a round, the leader last and after another one leads', async () => {
  const { state, round } = etcdOf(['a', 'b', 'c'])
  await round()
  expect(state.done).toEqual(['defragment b', 'event 0'])
  await round()
  const { status } = await round()
  expect(state.done.slice(2)).toEqual(['defragment c', 'event 0', 'leader b', 'defragment a', 'event 0'])
  expect(status).toMatchObject({ state: 'writable', defragmented: { member: 'a', before: 100 * mebibyte, after: 10 * mebibyte } })
  await round()
  expect(state.done).toHaveLength(7)
})

test('nothing is defragmented while another node has the claim, or a member does not answer', async () => {
  const other = etcdOf(['a', 'b', 'c'], { holder: 'b' })
  await other.round()
  expect(other.state.done).toEqual([])
  const gone = etcdOf(['a', 'b', 'c'], { silent: 'c' })
  await gone.round()
  expect(gone.state.done).toEqual([])
  gone.state.silent = undefined
  await gone.round()
  expect(gone.state.done).toEqual(['defragment b', 'event 0'])
})

test('a full etcd is compacted, each member defragmented, and then the alarm disarmed', async () => {
  const { state, round } = etcdOf(['a', 'b', 'c'], { full: true })
  const { status, problems } = await round()
  const each = ['defragment b', 'event 0', 'defragment c', 'event 0', 'leader b', 'defragment a', 'event 0']
  expect(state.done).toEqual(['event 1', 'compact 7', ...each, 'disarm NOSPACE', 'event 2'])
  expect(status).toMatchObject({ state: 'writable', full: { recovered: true } })
  expect(problems).toEqual([])
})

test('a full etcd grants no claim: its leader’s node acts, unless another one has the claim', async () => {
  const other = etcdOf(['a', 'b'], { full: true, holder: 'b' })
  expect((await other.round()).problems).toMatchObject([{ id: 'etcd-full' }])
  expect(other.state.done).toEqual([])
  const follower = etcdOf(['a', 'b'], { full: true })
  follower.state.leader = 'b'
  await follower.round()
  expect(follower.state.done).toEqual([])
})

test('an alarm stays armed where the data itself is too large, and is tried again after a minute', async () => {
  const { state, round, pass } = etcdOf(['a'], { full: true, data: 100 })
  const { status, problems } = await round()
  expect(state.done).toEqual(['event 1', 'compact 7', 'defragment a', 'event 0', 'event 3'])
  expect(status).toMatchObject({ state: 'full', full: { recovered: false } })
  expect(problems[0]?.message).toContain('raise "quota-backend-bytes"')
  await round()
  expect(state.done).toHaveLength(5)
  pass(60_001)
  await round()
  expect(state.done).toHaveLength(10)
})
