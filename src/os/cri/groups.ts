/** The control groups of the system's own services and their limits. */
import type { GroupLimits } from '../../supervise/containerd/spec.ts'

/** Memory in MiB, processor share in thousandths of a core; `noSwap` keeps the group out of swap. */
export interface SystemGroup {
  readonly path: string
  readonly min?: number
  readonly low?: number
  readonly max?: number
  readonly millicores: number
  readonly noSwap?: boolean
}

/** Every group, parents first. */
export const systemGroups: readonly SystemGroup[] = [
  { path: '/init', min: 96, low: 192, millicores: 2000, noSwap: true },
  { path: '/system', min: 96, low: 192, millicores: 1500 },
  { path: '/system/runtime', min: 48, low: 96, millicores: 500, noSwap: true },
  { path: '/system/udevd', min: 8, low: 16, millicores: 250, noSwap: true },
  { path: '/system/apid', min: 16, low: 32, max: 128, millicores: 500, noSwap: true },
  { path: '/system/trustd', min: 8, low: 16, max: 128, millicores: 250, noSwap: true },
  { path: '/system/metricsd', max: 128, millicores: 100, noSwap: true },
  { path: '/system/dashboard', max: 128, millicores: 200 },
  { path: '/podruntime', min: 292, low: 840, millicores: 4000 },
  { path: '/podruntime/runtime', min: 196, low: 392, millicores: 1000, noSwap: true },
  { path: '/podruntime/kubelet', min: 96, low: 192, millicores: 1000, noSwap: true },
  { path: '/podruntime/etcd', low: 256, millicores: 2000, noSwap: true },
]

const mebibyte = 1024 * 1024

/** A group's limits in bytes and in processor weight (1 to 10000), the share capped to the machine's processors. */
export function limitsOf({ min, low, max, millicores, noSwap }: SystemGroup, cores: number): GroupLimits {
  return {
    memoryMin: min && min * mebibyte,
    memoryLow: low && low * mebibyte,
    memoryMax: max && max * mebibyte,
    swapMax: noSwap ? 0 : undefined,
    cpuWeight: weight(Math.min(millicores, cores * 1000)),
  }
}

/** The limits of the group with that path. */
export function limitsOfGroup(path: string, cores: number = navigator.hardwareConcurrency): GroupLimits {
  const group = systemGroups.find((candidate) => candidate.path === path)
  return group ? limitsOf(group, cores) : {}
}

/** The weight of cgroup version 2 for a share in millicores, by way of version 1's shares. */
function weight(millicores: number): number {
  return Math.floor((((millicores * 1024) / 1000 - 2) * 9999) / 262142) + 1
}
