/** Which members need defragmentation, from their sizes alone. */

/** A voting member as it reports itself. */
export interface MemberSize {
  /** Decimal text. */
  readonly id: string
  readonly name: string
  readonly leads: boolean
  /** Bytes of its file. */
  readonly size: number
  /** Bytes of its file that hold data. */
  readonly inUse: number
  /** Bytes at which it refuses writes. */
  readonly quota: number
}

/** A smaller database is left alone, in bytes: its free pages are used again soon, and cost nobody anything. */
export const defragmentationFloor = 64 * 1024 * 1024

/** etcd's quota where its flag is 0. */
const defaultQuota = 2 * 1024 * 1024 * 1024

/** Above this part of its quota in use, etcd will soon refuse writes, and defragmentation will not help. */
const warningShare = 0.8

/** A member's quota in bytes, from what it reports; infinite where it is switched off. */
export const quotaOf = (reported: number): number => (reported === 0 ? defaultQuota : reported < 0 ? Number.POSITIVE_INFINITY : reported)

/** The members of which more than half is free space, the leader last: its defragmentation delays every write. */
export const wasteful = (members: readonly MemberSize[]): MemberSize[] =>
  leaderLast(members.filter(({ size, inUse }) => size > defragmentationFloor && inUse < size / 2))

/** Members in the order in which they are defragmented. */
export const leaderLast = (members: readonly MemberSize[]): MemberSize[] =>
  [...members].sort((a, b) => Number(a.leads) - Number(b.leads) || (a.name < b.name ? -1 : 1))

/** The members whose data, without free space, nearly fills their quota. */
export const nearlyFull = (members: readonly MemberSize[]): MemberSize[] =>
  members.filter(({ inUse, quota }) => inUse > quota * warningShare)
