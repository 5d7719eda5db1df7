import { expect, test } from 'bun:test'
import { rolloutFailure, rolloutLag } from '../../src/kube/rollout.ts'

const metadata = { name: 'web', namespace: 'default', generation: 2 }
const workload = (kind: string, status: object, spec: object = {}) => ({ apiVersion: 'apps/v1', kind, metadata, spec, status })

test.each([
  [
    'a Deployment whose pods are new and available',
    workload('Deployment', { observedGeneration: 2, updatedReplicas: 1, availableReplicas: 1 }),
  ],
  [
    'a DaemonSet on every node',
    workload('DaemonSet', { observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3 }),
  ],
  ['another kind', workload('ConfigMap', {})],
])('%s is rolled out', (_, object) => {
  expect(rolloutLag(object)).toBeUndefined()
})

test.each([
  [
    'one whose change was not seen yet',
    workload('Deployment', { observedGeneration: 1, updatedReplicas: 1, availableReplicas: 1 }),
    'Deployment default/web: 1 of 1 pods are up to date',
  ],
  [
    'one with pods that are not available',
    workload('Deployment', { observedGeneration: 2, updatedReplicas: 3, availableReplicas: 2 }, { replicas: 3 }),
    'Deployment default/web: 2 of 3 pods are up to date',
  ],
  [
    'a DaemonSet with a pod of before',
    workload('DaemonSet', { observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 3 }),
    'DaemonSet default/web: 1 of 3 pods are up to date',
  ],
])('%s is not', (_, object, lag) => {
  expect(rolloutLag(object)).toBe(lag)
})

test('a Deployment that makes no progress has failed', () => {
  const conditions = [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message: 'timed out' }]
  expect(rolloutFailure(workload('Deployment', { conditions }))).toBe('Deployment default/web: timed out')
  expect(rolloutFailure(workload('Deployment', {}))).toBeUndefined()
})
