import { availableParallelism } from 'node:os'
import * as cgroup from '../../linux/process/cgroup.ts'
import { limitsOf, systemGroups } from '../../os/cri/groups.ts'

/** Makes the system's groups and moves init into its own; gives the limits that this kernel has no place for. */
export function prepareCgroups(): string[] {
  const trees = cgroup.hierarchy()
  // On version 2 a group with processes cannot have children with controllers: init leaves the root first.
  cgroup.createCgroup('/init', trees)
  cgroup.attach('/init', 0, trees)
  const missing = new Set<string>()
  for (const group of systemGroups) {
    cgroup.createCgroup(group.path, trees)
    for (const limit of cgroup.limit(group.path, limitsOf(group, availableParallelism()), trees)) missing.add(limit)
  }
  return [...missing]
}
