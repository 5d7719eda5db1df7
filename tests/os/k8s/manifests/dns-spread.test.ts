import { expect, test } from 'bun:test'
import { makeClock } from '../../../../src/cosi/clock.ts'
import type { KubeClient } from '../../../../src/kube/client.ts'
import type { KubeObject } from '../../../../src/kube/object.ts'
import { moveOne } from '../../../../src/os/k8s/controllers/manifests/dns-spread.ts'
import { crowdedDns } from '../../../../src/os/k8s/manifests/dns-spread.ts'

const now = new Date('2026-01-01T00:10:00Z')
const ready = (since = '2026-01-01T00:05:00Z', status = 'True') => ({ conditions: [{ type: 'Ready', status, lastTransitionTime: since }] })
const node = (name: string, spec: object = {}, status: object = ready()): KubeObject => ({
  ...{ apiVersion: 'v1', kind: 'Node', metadata: { name }, spec, status },
})
const pod = (name: string, nodeName: string, status: object = ready(), more: object = {}): KubeObject => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'kube-system', ...more }, spec: { nodeName }, status },
})
const two = [
  pod('old', 'cp', ready(), { creationTimestamp: '2026-01-01T00:00:00Z' }),
  pod('new', 'cp', ready(), { creationTimestamp: '2026-01-01T00:01:00Z' }),
]

test('the newest pod moves when another node could take it', () => {
  const taint = { key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }
  const move = crowdedDns([node('cp'), node('w2'), node('w1', { taints: [taint] })], two, now)
  expect([move?.pod.metadata.name, move?.to]).toEqual(['new', ['w1', 'w2']])
})

test.each([
  ['there is no other node', [node('cp')], two],
  ['the other is cordoned', [node('cp'), node('w', { unschedulable: true })], two],
  ['the other has a taint', [node('cp'), node('w', { taints: [{ key: 'a', effect: 'NoSchedule' }] })], two],
  ['the other is not ready', [node('cp'), node('w', {}, ready('2026-01-01T00:00:00Z', 'False'))], two],
  ['the other has just become ready', [node('cp'), node('w', {}, ready('2026-01-01T00:09:50Z'))], two],
  ['they are on two nodes', [node('cp'), node('w')], [pod('a', 'cp'), pod('b', 'w')]],
  ['there is only one', [node('cp'), node('w')], [pod('a', 'cp')]],
  ['one is not ready', [node('cp'), node('w')], [pod('a', 'cp'), pod('b', 'cp', ready('2026-01-01T00:00:00Z', 'False'))]],
  ['one is ending', [node('cp'), node('w')], [pod('a', 'cp'), pod('b', 'cp', ready(), { deletionTimestamp: '2026-01-01T00:09:00Z' })]],
])('none moves when %s', (_, nodes, pods) => {
  expect(crowdedDns(nodes, pods, now)).toBeUndefined()
})

test('a pod that has ended does not count as one on another node', () => {
  const ended = pod('ended', 'w1', { phase: 'Succeeded', ...ready('2026-01-01T00:00:00Z', 'False') })
  expect(crowdedDns([node('cp'), node('w1')], [...two, ended], now)?.pod.metadata.name).toBe('new')
})

test('a pod is evicted by the elected control plane, once for each set of nodes', async () => {
  const calls: string[] = []
  const nodes = [node('cp'), node('w1')]
  const schedulers = [pod('kube-scheduler-cp', 'cp', ready(), { deletionTimestamp: '2026-01-01T00:09:00Z' })]
  const client = {
    list: async ({ kind }: { kind: string }, { labelSelector = '' }: { labelSelector?: string }) => ({
      items: kind === 'Node' ? nodes : labelSelector === 'k8s-app=kube-dns' ? two : schedulers,
      resourceVersion: '1',
    }),
    request: async (method: string, path: string) => void calls.push(`${method} ${path}`),
  } as unknown as KubeClient
  const elect = async (name: string, act: (holding: AbortSignal) => Promise<void>, signal: AbortSignal) => {
    calls.push(name)
    await act(signal)
  }
  const machine = { clock: makeClock({ now: () => now }), elect }
  const tried = new Set<string>()
  const look = () => moveOne(machine, client, tried, new AbortController().signal)
  // Nobody would place it: the only scheduler is ending.
  expect(await look()).toBeUndefined()
  schedulers[0] = pod('kube-scheduler-cp', 'cp')
  expect((await look())?.pod.metadata.name).toBe('new')
  const eviction = ['ichor:v1:dnsSpreadMutex', 'POST /api/v1/namespaces/kube-system/pods/new/eviction']
  expect(calls).toEqual(eviction)
  // The scheduler has put it back.
  expect(await look()).toBeUndefined()
  nodes.push(node('w2'))
  await look()
  expect(calls).toEqual([...eviction, ...eviction])
})
