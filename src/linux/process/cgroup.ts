/**
 * Control groups. Version 2 is one tree. Version 1 is a tree per controller (hybrid: with an empty version 2 tree beside
 * them), and a group is then the same path in each of them.
 */
import { mkdirSync, readdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { pause } from '../../timing/pause.ts'
import { failedWith } from '../../wire/errno.ts'
import { exists, readText, readTextIfThere, writeInto } from '../fs/files.ts'
import { mounts } from '../fs/mount.ts'
import { SystemError, toSystemError, translated } from '../system-error.ts'
import { kill } from './process.ts'

/** The mounted trees. */
export interface Hierarchy {
  version: 1 | 2
  /** Controller (version 1) or `unified` to mount point. */
  roots: Record<string, string>
}

/** Limits of a group; bytes for memory. */
export interface CgroupLimits {
  memoryMin?: number | undefined
  memoryLow?: number | undefined
  memoryMax?: number | undefined
  swapMax?: number | undefined
  /** 1 to 10000; the default is 100. */
  cpuWeight?: number
  /** Processors; 1.5 is one and a half. */
  cpuMax?: number
  pidsMax?: number
}

/** Current usage of a group; bytes and nanoseconds. */
export interface CgroupUsage {
  memory: number
  cpu: bigint
  pids: number
}

const controllers = ['cpu', 'cpuset', 'io', 'memory', 'pids', 'hugetlb']

/** Finds the mounted trees. */
export function hierarchy(): Hierarchy {
  const roots: Record<string, string> = {}
  for (const { type, target, superOptions } of mounts()) {
    if (type === 'cgroup2') roots.unified = target
    if (type !== 'cgroup') continue
    for (const option of superOptions) {
      if (/^(cpu|cpuacct|cpuset|memory|devices|freezer|blkio|pids|net_cls|net_prio|perf_event|hugetlb|rdma|misc)$/.test(option))
        roots[option] = target
      if (option.startsWith('name=')) roots[option] = target
    }
  }
  const kinds = Object.keys(roots)
  if (kinds.length === 0) throw new SystemError('find cgroups', 'ENOENT', '', 'no cgroup file system is mounted')
  return { version: kinds.every((kind) => kind === 'unified') ? 2 : 1, roots }
}

/** The folders of a group, one for each tree. */
export function foldersOf(path: string, { roots } = hierarchy()): string[] {
  if (path.split('/').includes('..')) throw new SystemError('find cgroup', 'EINVAL', JSON.stringify(path))
  return [...new Set(Object.values(roots))].map((root) => join(root, path))
}

/** Creates a group and its parents; does nothing when they exist. */
export function createCgroup(path: string, trees = hierarchy()): void {
  for (const root of new Set(Object.values(trees.roots))) {
    let folder = root
    if (path.split('/').includes('..')) throw new SystemError('create cgroup', 'EINVAL', JSON.stringify(path))
    for (const name of path.split('/').filter(Boolean)) {
      if (trees.version === 2) delegate(folder)
      const parent = folder
      folder = join(folder, name)
      translated('create cgroup', folder, () => mkdirSync(folder, { recursive: true }))
      if (root === trees.roots.cpuset && trees.version === 1) inheritCpuset(parent, folder)
    }
  }
}

/** Enables controllers for the groups below; fails with EBUSY while the group contains processes of its own. */
function delegate(folder: string): void {
  const available = (readTextIfThere(join(folder, 'cgroup.controllers')) ?? '').trim().split(' ')
  const enabled = (readTextIfThere(join(folder, 'cgroup.subtree_control')) ?? '').trim().split(' ')
  for (const name of controllers) {
    if (!available.includes(name) || enabled.includes(name)) continue
    try {
      writeInto(join(folder, 'cgroup.subtree_control'), `+${name}`)
    } catch (error) {
      if (!failedWith(error, 'EBUSY', 'EOPNOTSUPP', 'ENOTSUP', 'ENOENT')) throw error
    }
  }
}

// cpuset(7): a new version 1 group has no processors, and accepts no process until it has some.
function inheritCpuset(parent: string, folder: string): void {
  for (const file of ['cpuset.cpus', 'cpuset.mems']) {
    if (readText(join(folder, file)).trim() === '') writeInto(join(folder, file), readText(join(parent, file)).trim())
  }
}

/** Moves a process (this one when pid is 0) into a group. */
export function attach(path: string, pid = 0, trees = hierarchy()): void {
  for (const folder of foldersOf(path, trees)) writeInto(join(folder, 'cgroup.procs'), String(pid))
}

/** Sets the limits of a group; returns the names of those that this kernel or tree does not support. */
export function limit(path: string, limits: CgroupLimits, trees = hierarchy()): string[] {
  const missing: string[] = []
  const put = (name: keyof CgroupLimits, root: string | undefined, file: string, value: string) => {
    if (root === undefined || !exists(join(root, path, file))) missing.push(name)
    else writeInto(join(root, path, file), value)
  }
  const { memoryMin, memoryLow, memoryMax, swapMax, cpuWeight, cpuMax, pidsMax } = limits
  const period = 100_000
  if (trees.version === 2) {
    const root = trees.roots.unified
    const number = (value: number) => (value === Number.POSITIVE_INFINITY ? 'max' : String(Math.floor(value)))
    if (memoryMin !== undefined) put('memoryMin', root, 'memory.min', number(memoryMin))
    if (memoryLow !== undefined) put('memoryLow', root, 'memory.low', number(memoryLow))
    if (memoryMax !== undefined) put('memoryMax', root, 'memory.max', number(memoryMax))
    if (swapMax !== undefined) put('swapMax', root, 'memory.swap.max', number(swapMax))
    if (cpuWeight !== undefined) put('cpuWeight', root, 'cpu.weight', number(cpuWeight))
    if (cpuMax !== undefined) put('cpuMax', root, 'cpu.max', `${number(cpuMax * period)} ${period}`)
    if (pidsMax !== undefined) put('pidsMax', root, 'pids.max', number(pidsMax))
    return missing
  }
  const { memory, cpu, pids } = trees.roots
  const number = (value: number) => (value === Number.POSITIVE_INFINITY ? '-1' : String(Math.floor(value)))
  if (memoryMin !== undefined) missing.push('memoryMin')
  if (memoryLow !== undefined) put('memoryLow', memory, 'memory.soft_limit_in_bytes', number(memoryLow))
  if (memoryMax !== undefined) put('memoryMax', memory, 'memory.limit_in_bytes', number(memoryMax))
  if (swapMax !== undefined && memoryMax !== undefined) put('swapMax', memory, 'memory.memsw.limit_in_bytes', number(memoryMax + swapMax))
  else if (swapMax === 0) put('swapMax', memory, 'memory.swappiness', '0')
  else if (swapMax !== undefined) missing.push('swapMax')
  if (cpuWeight !== undefined) put('cpuWeight', cpu, 'cpu.shares', number(2 + ((cpuWeight - 1) * 262142) / 9999))
  if (cpuMax !== undefined) {
    put('cpuMax', cpu, 'cpu.cfs_period_us', String(period))
    put('cpuMax', cpu, 'cpu.cfs_quota_us', number(cpuMax * period))
  }
  if (pidsMax !== undefined) put('pidsMax', pids, 'pids.max', pidsMax === Number.POSITIVE_INFINITY ? 'max' : number(pidsMax))
  return [...new Set(missing)]
}

/** Current usage of a group; an absent controller counts as 0. */
export function usage(path: string, trees = hierarchy()): CgroupUsage {
  const text = (root: string | undefined, file: string) =>
    root === undefined ? '' : (readTextIfThere(join(root, path, file)) ?? '').trim()
  if (trees.version === 2) {
    const root = trees.roots.unified
    const micros = /^usage_usec (\d+)$/m.exec(text(root, 'cpu.stat'))?.[1] ?? '0'
    return { memory: Number(text(root, 'memory.current')), cpu: BigInt(micros) * 1000n, pids: Number(text(root, 'pids.current')) }
  }
  const { memory, cpuacct, pids } = trees.roots
  return {
    memory: Number(text(memory, 'memory.usage_in_bytes')),
    cpu: BigInt(text(cpuacct, 'cpuacct.usage') || '0'),
    pids: Number(text(pids, 'pids.current')),
  }
}

/** The limit of memory in bytes of the group that this process sees as the root; undefined when there is none. */
export function memoryLimit(trees = hierarchy()): number | undefined {
  const { roots } = trees
  const file =
    trees.version === 2 ? roots.unified && join(roots.unified, 'memory.max') : roots.memory && join(roots.memory, 'memory.limit_in_bytes')
  const limit = Number((file && readTextIfThere(file)) || Number.NaN)
  return Number.isNaN(limit) ? undefined : limit
}

/** Pids in a group and its descendants. */
export function processesIn(path: string, trees = hierarchy()): number[] {
  const pids = new Set<number>()
  for (const folder of foldersOf(path, trees)) {
    for (const group of groupsBelow(folder)) {
      for (const pid of processList(group)) pids.add(pid)
    }
  }
  return [...pids].sort((a, b) => a - b)
}

function processList(group: string): number[] {
  try {
    return (readTextIfThere(join(group, 'cgroup.procs')) ?? '').split('\n').filter(Boolean).map(Number)
  } catch (error) {
    if (failedWith(error, 'ENODEV')) return [] // removed between being found and being read
    throw error
  }
}

// Innermost last.
function groupsBelow(folder: string): string[] {
  const found = [folder]
  for (let index = 0; index < found.length; index++) {
    const at = found[index] ?? folder
    try {
      for (const entry of readdirSync(at, { withFileTypes: true })) if (entry.isDirectory()) found.push(join(at, entry.name))
    } catch (error) {
      if (!failedWith(error, 'ENOENT')) throw error
      if (index === 0) return []
    }
  }
  return found
}

/** Kills every process in a group and its descendants; they may take a moment to exit. */
export function killCgroup(path: string, trees = hierarchy()): void {
  const file = trees.version === 2 && trees.roots.unified ? join(trees.roots.unified, path, 'cgroup.kill') : undefined
  if (file && exists(file)) {
    writeInto(file, '1')
    return
  }
  for (const pid of processesIn(path, trees)) {
    if (pid <= 0) continue // a process of another pid namespace shows as 0
    try {
      kill(pid, 'SIGKILL')
    } catch (error) {
      if (!failedWith(error, 'ESRCH')) throw error
    }
  }
}

/** Kills the processes of a group and removes it with its descendants, if it exists; EBUSY after the deadline. */
export async function removeCgroup(path: string, { deadlineMs = 10_000, trees = hierarchy() } = {}): Promise<void> {
  if (path.split('/').filter(Boolean).length === 0)
    throw new SystemError('remove cgroup', 'EINVAL', JSON.stringify(path), 'that is the root')
  const end = performance.now() + deadlineMs
  for (;;) {
    killCgroup(path, trees)
    try {
      for (const folder of foldersOf(path, trees)) for (const group of groupsBelow(folder).reverse()) removeOne(group)
      return
    } catch (error) {
      if (!failedWith(error, 'EBUSY') || performance.now() > end) throw toSystemError('remove cgroup', path, error)
      await pause(20)
    }
  }
}

function removeOne(folder: string): void {
  try {
    rmdirSync(folder)
  } catch (error) {
    if (!failedWith(error, 'ENOENT')) throw error
  }
}
