import { expect, test } from 'bun:test'
import { shutdownDefaults, shutdownTime } from '../../../../src/os/k8s/kubelet/shutdown-time.ts'

const byPriority = [
  { priority: 1000, shutdownGracePeriodSeconds: 20 },
  { priority: 0, shutdownGracePeriodSeconds: 45 },
]

test.each([
  ['nothing of the operator', {}, { shutdownGracePeriod: '30s', shutdownGracePeriodCriticalPods: '10s' }],
  ['a short period', { shutdownGracePeriod: '6s' }, { shutdownGracePeriod: '30s', shutdownGracePeriodCriticalPods: '3s' }],
  ['one second', { shutdownGracePeriod: '1s' }, { shutdownGracePeriod: '30s', shutdownGracePeriodCriticalPods: '0s' }],
  ['switched off', { shutdownGracePeriod: '0s' }, { shutdownGracePeriod: '30s', shutdownGracePeriodCriticalPods: '0s' }],
  ['a long period', { shutdownGracePeriod: '5m' }, { shutdownGracePeriod: '30s', shutdownGracePeriodCriticalPods: '10s' }],
  ['periods by priority', { shutdownGracePeriodByPodPriority: byPriority }, {}],
])('%s: the part of critical pods fits', (_, extra, expected) => {
  expect(shutdownDefaults(extra)).toEqual(expected)
})

test.each([
  [{}, 0],
  [{ shutdownGracePeriod: '1m30s' }, 90_000],
  [{ shutdownGracePeriodByPodPriority: byPriority }, 65_000],
  [{ shutdownGracePeriodByPodPriority: ['x', { priority: 1 }] }, 0],
])('the kubelet takes as long as %p allows: %p ms', (config, expected) => {
  expect(shutdownTime(config)).toBe(expected)
})
