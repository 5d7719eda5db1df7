import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  attach,
  createCgroup,
  foldersOf,
  type Hierarchy,
  limit,
  memoryLimit,
  processesIn,
  removeCgroup,
  usage,
} from '../../../src/linux/process/cgroup.ts'

// Plain folders stand for the trees: the names and values written are what counts here.
let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cgroup-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function tree(version: 1 | 2, files: Record<string, string>): Hierarchy {
  const roots: Record<string, string> = {}
  for (const [path, content] of Object.entries(files)) {
    const [root = ''] = path.split('/')
    roots[root] = join(folder, root)
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
  return { version, roots }
}
const content = (path: string) => readFileSync(join(folder, path), 'utf8')

const limits = { memoryMin: 1, memoryLow: 2, memoryMax: 3 << 20, swapMax: 0, cpuWeight: 100, cpuMax: 1.5, pidsMax: 20 }

describe('version 2', () => {
  const files = ['memory.min', 'memory.low', 'memory.max', 'memory.swap.max', 'cpu.weight', 'cpu.max', 'pids.max']

  test('limits have one file each', () => {
    const trees = tree(2, Object.fromEntries(files.map((file) => [`unified/a/${file}`, ''])))
    expect(limit('/a', limits, trees)).toEqual([])
    expect(files.map((file) => content(`unified/a/${file}`))).toEqual(['1', '2', '3145728', '0', '100', '150000 100000', '20'])
    expect(limit('/a', { memoryMax: Number.POSITIVE_INFINITY, cpuMax: Number.POSITIVE_INFINITY }, trees)).toEqual([])
    expect([content('unified/a/memory.max'), content('unified/a/cpu.max')]).toEqual(['max', 'max 100000'])
  })

  test('a limit without a file is reported, not ignored', () => {
    expect(limit('/a', { memoryMax: 1, pidsMax: 2 }, tree(2, { 'unified/a/pids.max': '' }))).toEqual(['memoryMax'])
  })

  test('controllers are enabled above a new group', () => {
    const trees = tree(2, { 'unified/cgroup.controllers': 'cpuset memory pids rdma\n', 'unified/cgroup.subtree_control': 'pids\n' })
    createCgroup('/a/b', trees)
    expect(content('unified/cgroup.subtree_control')).toBe('+memory') // the last of two writes to a plain file
    expect(foldersOf('/a/b', trees)).toEqual([join(folder, 'unified/a/b')])
  })

  test('use is read', () => {
    const trees = tree(2, {
      'unified/a/memory.current': '4096\n',
      'unified/a/cpu.stat': 'usage_usec 7\nuser_usec 5\n',
      'unified/a/pids.current': '3\n',
    })
    expect(usage('/a', trees)).toEqual({ memory: 4096, cpu: 7000n, pids: 3 })
  })
})

describe('version 1', () => {
  test('limits are set in several trees, and unsupported ones are reported', () => {
    const trees = tree(1, {
      'memory/a/memory.soft_limit_in_bytes': '',
      'memory/a/memory.limit_in_bytes': '',
      'memory/a/memory.memsw.limit_in_bytes': '',
      'cpu/a/cpu.shares': '',
      'cpu/a/cpu.cfs_period_us': '',
      'cpu/a/cpu.cfs_quota_us': '',
      'pids/a/pids.max': '',
    })
    expect(limit('/a', limits, trees)).toEqual(['memoryMin'])
    expect(content('memory/a/memory.limit_in_bytes')).toBe('3145728')
    expect(content('memory/a/memory.memsw.limit_in_bytes')).toBe('3145728')
    expect(content('cpu/a/cpu.shares')).toBe('2597')
    expect(content('cpu/a/cpu.cfs_quota_us')).toBe('150000')
    expect(content('pids/a/pids.max')).toBe('20')
  })

  test('a group is created in every tree, with the processors of its parent', () => {
    const trees = tree(1, {
      'cpuset/cpuset.cpus': '0-1\n',
      'cpuset/cpuset.mems': '0\n',
      'cpuset/a/cpuset.cpus': '',
      'cpuset/a/cpuset.mems': '',
      'pids/x': '',
    })
    createCgroup('/a', trees)
    expect(content('cpuset/a/cpuset.cpus')).toBe('0-1')
    expect(foldersOf('/a', trees)).toEqual([join(folder, 'cpuset/a'), join(folder, 'pids/a')])
  })

  test('a process joins all trees, and groups below count too', () => {
    const trees = tree(1, { 'memory/a/cgroup.procs': '', 'pids/a/cgroup.procs': '', 'pids/a/b/cgroup.procs': '8\n5\n' })
    attach('/a', 7, trees)
    expect(processesIn('/a', trees)).toEqual([5, 7, 8])
    expect(processesIn('/none', trees)).toEqual([])
  })
})

test('nothing leads out of the trees or removes a root', async () => {
  const trees = tree(2, { 'unified/x': '' })
  expect(() => createCgroup('/../x', trees)).toThrow('EINVAL')
  expect(() => attach('/a/../../x', 1, trees)).toThrow('EINVAL')
  await expect(removeCgroup('/', { trees })).rejects.toThrow('that is the root')
  await removeCgroup('/none', { trees })
})

test.each([
  [2, { 'unified/memory.max': '2147483648\n' }, 2_147_483_648],
  [2, { 'unified/memory.max': 'max\n' }, undefined],
  [2, { 'unified/cgroup.procs': '' }, undefined],
  [1, { 'memory/memory.limit_in_bytes': '1073741824\n' }, 1_073_741_824],
  [1, { 'cpu/tasks': '' }, undefined],
] as const)('the limit of memory with version %p of %p is %p', (version, files, expected) => {
  expect(memoryLimit(tree(version, files))).toBe(expected)
})
