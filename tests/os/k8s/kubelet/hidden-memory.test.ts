import { expect, test } from 'bun:test'
import { kubeletConfiguration } from '../../../../src/os/k8s/kubelet/configuration.ts'
import { hiddenMemory } from '../../../../src/os/k8s/kubelet/hidden-memory.ts'

const gib = 1024 ** 3
const kernel = (mode: 'container' | 'metal', limit: number | undefined) => ({
  mode,
  files: { readTextIfThere: () => `MemTotal: ${(24 * gib) / 1024} kB\nMemFree: 1 kB\n` },
  cgroup: { memoryLimit: () => limit },
})

test.each([
  ['container', 2 * gib, 22 * gib],
  ['container', undefined, 0],
  ['container', 2 ** 63, 0],
  ['metal', 2 * gib, 0],
] as const)('a %s node with the limit %p hides %p bytes', (mode, limit, expected) => {
  expect(hiddenMemory(kernel(mode, limit))).toBe(expected)
})

const config = { extraConfig: {} } as Parameters<typeof kubeletConfiguration>[0]

test('hidden memory is not allocatable, and evicts pods before the limit is reached', () => {
  const context = { mode: 'container', controlPlane: false, taints: [] } as const
  expect(kubeletConfiguration(config, { ...context, hiddenMemory: 22 * gib }).evictionHard).toMatchObject({
    'memory.available': `${(22 * gib) / 1024 + 100 * 1024}Ki`,
  })
  expect(kubeletConfiguration(config, context).evictionHard).toMatchObject({ 'memory.available': `${100 * 1024}Ki` })
})

test('how full the disk of a host is does not evict the pods of a node in a container; on a machine the thresholds of the kubelet hold', () => {
  const context = { controlPlane: false, taints: [] } as const
  const container = kubeletConfiguration(config, { ...context, mode: 'container' })
  expect(container).toMatchObject({
    evictionHard: { 'nodefs.available': '1Gi', 'imagefs.available': '1Gi' },
    imageGCHighThresholdPercent: 100,
  })
  const machine = kubeletConfiguration(config, { ...context, mode: 'metal' })
  expect(machine).not.toHaveProperty('evictionHard')
  expect(machine).not.toHaveProperty('imageGCHighThresholdPercent')
})
