import { expect, test } from 'bun:test'
import type { KubeClient } from '../../src/kube/client.ts'
import { DrainTimeout, drain, mayLeave } from '../../src/kube/drain.ts'
import { KubeError } from '../../src/kube/errors.ts'
import type { KubeObject } from '../../src/kube/object.ts'

const pod = (name: string, more: Partial<KubeObject['metadata']> = {}, phase = 'Running'): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default', uid: name, ...more },
  status: { phase },
})

const budget = new KubeError(429, 'TooManyRequests', 'cannot evict pod', [
  'The disruption budget web needs 2 healthy pods and has 2 currently',
])

/** A cluster whose pods end when they are evicted, unless a disruption budget refuses a number of attempts. */
function cluster(pods: KubeObject[], held: Record<string, number> = {}, { unschedulable = false, refusal = budget } = {}) {
  const calls: string[] = []
  const client = {
    get: async () => ({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' }, spec: { unschedulable } }),
    async patch(_: unknown, name: string, __: unknown, { body }: { body: unknown }) {
      calls.push(`patch ${name} ${JSON.stringify(body)}`)
    },
    async list(_: unknown, query: { fieldSelector: string }) {
      expect(query.fieldSelector).toBe('spec.nodeName=n1')
      return { items: [...pods], resourceVersion: '1' }
    },
    async request(method: string, path: string) {
      calls.push(`${method} ${path}`)
      const name = path.split('/').at(-2) ?? ''
      const left = held[name] ?? 0
      if (left > 0) {
        held[name] = left - 1
        throw refusal
      }
      pods.splice(
        pods.findIndex(({ metadata }) => metadata.name === name),
        1,
      )
    },
  }
  return { client: client as unknown as KubeClient, calls }
}

test('a drain cordons, evicts what it may and waits for a disruption budget', async () => {
  const pods = [
    pod('app'),
    pod('held'),
    pod('proxy', { ownerReferences: [{ kind: 'DaemonSet', name: 'p', controller: true }] }),
    pod('static', { annotations: { 'kubernetes.io/config.mirror': 'x' } }),
    pod('done', {}, 'Succeeded'),
  ]
  const { client, calls } = cluster(pods, { held: 2 })
  await drain(client, 'n1', { timeout: 1000, interval: 1 })
  expect(calls).toEqual([
    'patch n1 {"spec":{"unschedulable":true}}',
    'POST /api/v1/namespaces/default/pods/app/eviction',
    'POST /api/v1/namespaces/default/pods/held/eviction',
    'POST /api/v1/namespaces/default/pods/held/eviction',
    'POST /api/v1/namespaces/default/pods/held/eviction',
  ])
})

test('a drain that times out names the remaining pods and the budget that keeps them', async () => {
  const { client } = cluster([pod('held'), pod('other')], { held: 1000 })
  const failure = drain(client, 'n1', { timeout: 0, interval: 1 })
  await expect(failure).rejects.toThrow(
    'drain node "n1": not done within 0 s: default/held: The disruption budget web needs 2 healthy pods and has 2 currently; default/other is ending',
  )
  const error = await failure.catch((caught) => caught)
  expect(error).toBeInstanceOf(DrainTimeout)
  expect(error.remaining.map((each: { pod: string }) => each.pod)).toEqual(['default/held', 'default/other'])
})

test('a server in trouble is tried again, any other refusal ends the drain', async () => {
  const busy = cluster([pod('app')], { app: 1 }, { refusal: new KubeError(503, 'ServiceUnavailable', 'later') })
  await drain(busy.client, 'n1', { timeout: 1000, interval: 1 })
  expect(busy.calls.filter((call) => call.startsWith('POST'))).toHaveLength(2)
  const forbidden = cluster([pod('app')], { app: 1 }, { refusal: new KubeError(403, 'Forbidden', 'not you') })
  await expect(drain(forbidden.client, 'n1', { timeout: 1000, interval: 1 })).rejects.toThrow('not you')
})

test.each([
  [false, ['patch n1 {"metadata":{"annotations":{"a":"b"}},"spec":{"unschedulable":true}}']],
  [true, []],
])('a node that was cordoned before: %p, is not marked as cordoned by this drain', async (unschedulable, expected) => {
  const { client, calls } = cluster([], {}, { unschedulable })
  const notes: boolean[] = []
  await drain(client, 'n1', { timeout: 1000, annotations: { a: 'b' }, cordoned: (byThis) => void notes.push(byThis) })
  expect([calls, notes]).toEqual([expected, [!unschedulable]])
})

test('pods of daemons, static pods and finished ones stay; those without an owner on request', () => {
  const owned = (kind: string) => pod('p', { ownerReferences: [{ kind, name: 'o', controller: true }] })
  expect(mayLeave(owned('ReplicaSet'), { keepOwnerless: true })).toBe(true)
  expect(mayLeave(owned('DaemonSet'))).toBe(false)
  expect(mayLeave(pod('p', { annotations: { 'kubernetes.io/config.mirror': 'x' } }))).toBe(false)
  expect(mayLeave(pod('p', {}, 'Succeeded'))).toBe(false)
  expect([mayLeave(pod('p')), mayLeave(pod('p'), { keepOwnerless: true })]).toEqual([true, false])
})

test('a drain that is interrupted ends with the reason', async () => {
  const { client } = cluster([pod('held')], { held: 1000 })
  const abort = new AbortController()
  const draining = drain(client, 'n1', {
    timeout: 60_000,
    interval: 1,
    signal: abort.signal,
    report: () => abort.abort(new Error('interrupted')),
  })
  await expect(draining).rejects.toThrow('interrupted')
})
