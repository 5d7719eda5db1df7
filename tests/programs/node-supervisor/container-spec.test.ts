import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ContainerPlan, containerSpec, diskDirectories, initHeap } from '../../../src/programs/node-supervisor/container-spec.ts'

const plan: ContainerPlan = {
  hostname: 'demo-worker-1',
  rootfs: '/c/rootfs',
  netns: '/c/nodes/demo-worker-1/netns',
  disk: '/c/nodes/demo-worker-1/disk',
  cgroup: '/ichor-0badcafe/demo-worker-1',
  capabilities: ['CAP_CHOWN'],
  openFiles: 1024,
  cpus: 1500,
  memory: 1024 ** 3,
  env: [],
}

test('the root is read-only and everything that is kept lies on the node’s disk', () => {
  const spec = containerSpec(plan)
  expect(spec.root).toEqual({ path: '/c/rootfs', readonly: true })
  const binds = spec.mounts.filter(({ type }) => type === 'bind')
  expect(binds.map(({ destination }) => destination)).toEqual(diskDirectories.map(({ target }) => target))
  expect(binds.every(({ source }) => source.startsWith('/c/nodes/demo-worker-1/disk/'))).toBe(true)
})

test('mounts that a node makes stay in the node', () => {
  for (const { options } of containerSpec(plan).mounts.filter(({ type }) => type === 'bind')) {
    expect(options.indexOf('rprivate')).toBeLessThan(options.indexOf('rshared'))
    expect(options).toContain('rprivate')
  }
})

test('init collects its garbage in time, in a container and on a machine', () => {
  expect(containerSpec(plan).process.env).toContain(initHeap)
  expect(readFileSync(join(import.meta.dir, '../../../rootfs/stage0/stage0.c'), 'utf8')).toContain(`"${initHeap}"`)
})

test('nothing is granted beyond what was handed in', () => {
  const { process, linux } = containerSpec(plan)
  expect(process.capabilities).toEqual({ bounding: ['CAP_CHOWN'], effective: ['CAP_CHOWN'], permitted: ['CAP_CHOWN'] })
  expect(process.rlimits).toEqual([{ type: 'RLIMIT_NOFILE', hard: 1024, soft: 1024 }])
  expect(linux.resources.cpu).toEqual({ quota: 150_000, period: 100_000 })
  expect(linux.resources.memory).toEqual({ limit: 1024 ** 3 })
})
