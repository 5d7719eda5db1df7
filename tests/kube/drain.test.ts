import { expect, test } from 'bun:test'
import type { KubeClient } from '../../src/kube/client.ts'
import { drain } from '../../src/kube/drain.ts'
import { KubeError } from '../../src/kube/errors.ts'
import type { KubeObject } from '../../src/kube/object.ts'

const pod = (name: string, more: Partial<KubeObject['metadata']> = {}, phase = 'Running'): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default', uid: name, ...more },
  status: { phase },
})

/** A cluster whose pods end when they are evicted, unless a disruption budget refuses a number of attempts. */
function cluster(pods: KubeObject[], held: Record<string, number> = {}) {
  const calls: string[] = []
  const client = {
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
        throw new KubeError(429, 'TooManyRequests', 'budget')
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

test('a drain that times out names the remaining pods', async () => {
  const { client } = cluster([pod('held')], { held: 1000 })
  await expect(drain(client, 'n1', { timeout: 0, interval: 1 })).rejects.toThrow('drain node "n1": default/held did not leave within 0 s')
})
