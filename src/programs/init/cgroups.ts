import { availableParallelism } from 'node:os'
import * as cgroup from '../../linux/cgroup.ts'

const mebibyte = 1024 * 1024

/** Groups of the system: memory in MiB, processor share in thousandths of a core; `noSwap` keeps them out of swap. */
const groups: readonly { path: string; min?: number; low?: number; max?: number; millicores: number; noSwap?: boolean }[] = [
  { path: '/init', min: 96, low: 192, millicores: 2000, noSwap: true },
  { path: '/system', min: 96, low: 192, millicores: 1500 },
  { path: '/system/runtime', min: 48, low: 96, millicores: 500, noSwap: true },
  { path: '/system/udevd', min: 8, low: 16, millicores: 250, noSwap: true },
  { path: '/system/apid', min: 16, low: 32, max: 128, millicores: 500, noSwap: true },
  { path: '/system/trustd', min: 8, low: 16, max: 128, millicores: 250, noSwap: true },
  { path: '/system/dashboard', max: 128, millicores: 200 },
  { path: '/podruntime', min: 292, low: 840, millicores: 4000 },
  { path: '/podruntime/runtime', min: 196, low: 392, millicores: 1000, noSwap: true },
  { path: '/podruntime/kubelet', min: 96, low: 192, millicores: 1000, noSwap: true },
  { path: '/podruntime/etcd', low: 256, millicores: 2000, noSwap: true },
]

/** Makes the system's groups and moves init into its own; gives the limits that this kernel has no place for. */
export function prepareCgroups(): string[] {
  const trees = cgroup.hierarchy()
  // On version 2 a group with processes cannot have children with controllers: init leaves the root first.
  cgroup.createCgroup('/init', trees)
  cgroup.attach('/init', 0, trees)
  const missing = new Set<string>()
  for (const { path, min, low, max, millicores, noSwap } of groups) {
    cgroup.createCgroup(path, trees)
    const limits = {
      memoryMin: min && min * mebibyte,
      memoryLow: low && low * mebibyte,
      memoryMax: max && max * mebibyte,
      swapMax: noSwap ? 0 : undefined,
      cpuWeight: weight(Math.min(millicores, availableParallelism() * 1000)),
    }
    for (const limit of cgroup.limit(path, limits, trees)) missing.add(limit)
  }
  return [...missing]
}

/** The weight of cgroup version 2 for a share in millicores, by way of version 1's shares. */
function weight(millicores: number): number {
  return Math.floor((((millicores * 1024) / 1000 - 2) * 9999) / 262142) + 1
}
