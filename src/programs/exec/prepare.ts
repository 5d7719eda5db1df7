/** Makes this process what the options say, in the one order in which nothing takes away what a later step needs. */

import { writeInto } from '../../linux/fs/files.ts'
import {
  boundingSet,
  type Capability,
  capabilities,
  capabilityNames,
  dropFromBoundingSet,
  keepCapabilities,
  raiseAmbient,
  setCapabilities,
} from '../../linux/process/capabilities.ts'
import { attach, createCgroup, hierarchy } from '../../linux/process/cgroup.ts'
import { setgid, setgroups, setuid } from '../../linux/process/identity.ts'
import { enter, unshare } from '../../linux/process/namespaces.ts'
import { oomScoreAdjustment, setNice, setNoNewPrivileges, setParentDeathSignal, setsid, umask } from '../../linux/process/process.ts'
import { getrlimit, setrlimit } from '../../linux/process/rlimit.ts'
import { filterSystemCalls } from '../../linux/process/seccomp.ts'
import { becomeAtExec } from '../../linux/process/selinux.ts'
import { failedWith } from '../../wire/errno.ts'
import type { ExecReport } from '../../wire/exec-report.ts'
import { seccompFilter } from '../../wire/seccomp/filter.ts'
import { seccompProfile } from '../../wire/seccomp/profile.ts'
import type { ExecOptions } from './options.ts'
import { restrictView } from './view.ts'

type Say = (line: ExecReport) => void

/** Prepares this process; returns which values had to be clamped. */
export function prepare(options: ExecOptions, say: Say): void {
  // First: what follows hides the file that it is written to, and it lasts until the program is executed.
  if (options.domain !== undefined) becomeAtExec(options.domain)
  joinCgroups(options.cgroups)
  if (options.oomScore !== undefined) setOomScore(options.oomScore, say)
  for (const limit of options.limits) setLimit(limit, say)
  if (options.nice !== undefined) setNice(options.nice)
  if (options.netns !== undefined) enter(options.netns, 'net')
  // After the control groups: a namespace of them begins at the group it is made in.
  if (options.unshare.length > 0) unshare(options.unshare)
  if (options.unshare.includes('mnt')) restrictView(options)
  if (options.newSession) setsid()
  if (options.umask !== undefined) umask(options.umask)
  if (options.cwd !== undefined) process.chdir(options.cwd)
  become(options)
  if (options.noNewPrivileges) setNoNewPrivileges()
  // After the change of user, which clears it.
  if (options.parentDeathSignal !== undefined) setParentDeathSignal(options.parentDeathSignal)
  // Last: all that is before may need calls that the filter forbids. With no_new_privs execve adds to no capability that is left.
  if (options.filtersSystemCalls)
    filterSystemCalls(seccompFilter(seccompProfile(capabilities().permitted.map((name) => `CAP_${name.toUpperCase()}`))))
}

function joinCgroups(paths: readonly string[]): void {
  if (paths.length === 0) return
  const trees = hierarchy()
  for (const path of paths) {
    createCgroup(path, trees)
    attach(path, 0, trees)
  }
}

// Lowering below what it was needs CAP_SYS_RESOURCE, which a container may lack.
function setOomScore(wanted: number, say: Say): void {
  const write = (score: number) => writeInto('/proc/self/oom_score_adj', String(score))
  try {
    write(wanted)
  } catch (error) {
    if (!failedWith(error, 'EACCES', 'EPERM')) throw error
    say({ kind: 'clamped', what: 'oom score', wanted, got: oomScoreAdjustment(), reason: 'it may not be lowered here' })
  }
}

function setLimit({ resource, soft, hard }: ExecOptions['limits'][number], say: Say): void {
  try {
    setrlimit(resource, { soft, hard })
  } catch (error) {
    if (!failedWith(error, 'EPERM')) throw error
    const now = getrlimit(resource)
    const got = { soft: Math.min(soft, now.hard), hard: Math.min(hard, now.hard) }
    setrlimit(resource, got)
    say({ kind: 'clamped', what: `rlimit ${resource}`, wanted: hard, got: got.hard, reason: 'the hard limit may not be raised here' })
  }
}

function become({ uid, gid, groups, keep, drop }: ExecOptions): void {
  const kept = capabilityNames.filter((name) => (keep?.includes(name) ?? true) && !drop.includes(name))
  const limited = keep !== undefined || drop.length > 0
  if (limited) dropFromBoundingSet(capabilityNames.filter((name) => !kept.includes(name)))
  const changesUser = uid !== undefined && uid !== 0
  const carried: Capability[] = changesUser && keep !== undefined ? available(kept) : []
  if (carried.length > 0) keepCapabilities(true)
  if (groups !== undefined || uid !== undefined || gid !== undefined) setgroups(groups ?? [])
  if (gid !== undefined) setgid(gid)
  if (uid !== undefined) setuid(uid)
  if (carried.length > 0) {
    setCapabilities({ effective: carried, permitted: carried, inheritable: carried })
    raiseAmbient(carried)
  } else if (limited && !changesUser) {
    const sets = available(kept)
    setCapabilities({ effective: sets, permitted: sets, inheritable: [] })
  }
}

// Limited to what this process may still have: a request for more fails as a whole.
function available(names: readonly Capability[]): Capability[] {
  const { permitted } = capabilities()
  const bounding = boundingSet()
  return names.filter((name) => permitted.includes(name) && bounding.includes(name))
}
