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

test('hidden memory is not allocatable, and evicts pods before the limit is reached', () => {
  const config = { extraConfig: {} } as Parameters<typeof kubeletConfiguration>[0]
  const context = { mode: 'container', controlPlane: false, taints: [] } as const
  expect(kubeletConfiguration(config, { ...context, hiddenMemory: 22 * gib }).evictionHard).toMatchObject({
    'memory.available': `${(22 * gib) / 1024 + 100 * 1024}Ki`,
    'nodefs.available': '10%',
  })
  expect(kubeletConfiguration(config, context)).not.toHaveProperty('evictionHard')
})
