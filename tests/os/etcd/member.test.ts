import { expect, setSystemTime, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { Bootstrap } from '../../../src/os/etcd/bootstrap.ts'
import type { EtcdClient } from '../../../src/os/etcd/client.ts'
import { observeMember } from '../../../src/os/etcd/controllers/member.ts'
import { EtcdMember } from '../../../src/os/etcd/resources/etcd-member.ts'
import { Service } from '../../../src/os/runtime/resources/service.ts'
import { fakeTime } from '../../support/fake-time.ts'

const day = 86_400_000

/** A node whose etcd is a learner: its leader refuses to promote it until it has caught up. */
function learner(time: ReturnType<typeof fakeTime>) {
  const seen = { promotions: [] as string[], caughtUp: false, answers: true }
  const client = (calls: Partial<EtcdClient>) => ({ ...calls, close() {} }) as EtcdClient
  const local = () =>
    client({
      async status() {
        if (!seen.answers) throw new Error('connection refused')
        return { header: { memberId: '255' }, isLearner: true } as never
      },
    })
  const others = () =>
    client({
      async promote(id) {
        seen.promotions.push(id)
        if (!seen.caughtUp) throw new Error('can only promote a learner member which is in sync with leader')
      },
    })
  const store = new Store()
  const runtime = new Runtime(store, { log: silent, clock: time.clock })
  runtime.register(observeMember({ store, bootstrap: new Bootstrap() }, { local, others }))
  runtime.start()
  store.put(Service, 'etcd', { running: true, healthy: false, unknown: false })
  return { seen, store, runtime }
}

test.each([day, -day])('a learner is promoted as soon as it has caught up, though the wall clock is set by %d ms', async (step) => {
  using time = fakeTime()
  const { seen, store, runtime } = learner(time)
  /** Both what the runtime and what the program take for the time of day. */
  const stepWall = (milliseconds: number) => {
    time.stepWall(milliseconds)
    setSystemTime(Date.now() + milliseconds)
  }
  seen.answers = false
  await time.pass(runtime, 3_000)
  stepWall(step)
  seen.answers = true
  await time.pass(runtime, 3_000)
  expect(store.get(EtcdMember, 'local')?.spec.memberID).toBe('00000000000000ff')
  const before = seen.promotions.length
  expect(before).toBeGreaterThan(1)
  stepWall(-step)
  await time.pass(runtime, 5_000)
  // Once a second, before the step and after it.
  expect(seen.promotions.length - before).toBeWithin(4, 7)
  stepWall(step)
  seen.caughtUp = true
  const last = seen.promotions.length
  await time.pass(runtime, 2_000)
  expect(seen.promotions.slice(last)).toEqual(['255'])
  await time.pass(runtime, 60_000)
  expect(seen.promotions.length).toBe(last + 1)
  runtime.stop()
})

test('a member that votes is not promoted, and is forgotten when etcd ends', async () => {
  using time = fakeTime()
  const store = new Store()
  const runtime = new Runtime(store, { log: silent, clock: time.clock })
  const local = () => ({ status: async () => ({ header: { memberId: '255' }, isLearner: false }), close() {} }) as never
  const others = () => {
    throw new Error('no member must be queried')
  }
  runtime.register(observeMember({ store, bootstrap: new Bootstrap() }, { local, others }))
  runtime.start()
  store.put(Service, 'etcd', { running: true, healthy: true, unknown: false })
  await time.pass(runtime, 2_000)
  expect(store.get(EtcdMember, 'local')?.spec.memberID).toBe('00000000000000ff')
  store.put(Service, 'etcd', { running: false, healthy: false, unknown: true })
  await time.pass(runtime, 2_000)
  expect(store.get(EtcdMember, 'local')).toBeUndefined()
  runtime.stop()
})
