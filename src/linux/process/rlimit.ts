import { check, libc } from '../libc.ts'

const c = libc({ prlimit64: { args: ['i32', 'i32', 'ptr', 'ptr'], returns: 'i32' } })

const resources = {
  cpu: 0,
  fsize: 1,
  data: 2,
  stack: 3,
  core: 4,
  rss: 5,
  nproc: 6,
  nofile: 7,
  memlock: 8,
  as: 9,
  locks: 10,
  sigpending: 11,
  msgqueue: 12,
  nice: 13,
  rtprio: 14,
  rttime: 15,
} as const

/** The resources of setrlimit(2), lower case without RLIMIT_. */
export type LimitedResource = keyof typeof resources

/** Soft and hard limit; Infinity means unlimited. */
export interface ResourceLimit {
  soft: number
  hard: number
}

const infinity = 0xffff_ffff_ffff_ffffn
const toNumber = (value: bigint | undefined) => (value === undefined || value === infinity ? Number.POSITIVE_INFINITY : Number(value))
const toBits = (value: number) => (value === Number.POSITIVE_INFINITY ? infinity : BigInt(value))

/** Whether a string names a resource with a limit. */
export function isLimitedResource(name: string): name is LimitedResource {
  return Object.hasOwn(resources, name)
}

/** The limits of a process, this one when pid is 0. */
export function getrlimit(resource: LimitedResource, pid = 0): ResourceLimit {
  const old = new BigUint64Array(2)
  check('prlimit', c().prlimit64(pid, resources[resource], null, old), resource)
  return { soft: toNumber(old[0]), hard: toNumber(old[1]) }
}

/** Sets the limits of a process, this one when pid is 0. */
export function setrlimit(resource: LimitedResource, { soft, hard }: ResourceLimit, pid = 0): void {
  const wanted = new BigUint64Array([toBits(soft), toBits(hard)])
  check('prlimit', c().prlimit64(pid, resources[resource], wanted, null), resource)
}
