/** When the others can do without a member, so that it may be removed and join again. */
import type { Member } from '../client.ts'
import { majorityOf } from '../majority.ts'

/** The cluster as its other members see it. */
export interface Others {
  /** All members, agreed on by a majority. */
  readonly members: readonly Member[]
  /** Ids of the voting members that answer and know a leader. */
  readonly answering: ReadonlySet<string>
}

/** Why a member must not be removed now; undefined when it may be. `own` is undefined where it is no member any more. */
export function obstacleTo(own: Member | undefined, { members, answering }: Others): string | undefined {
  const joining = members.find(({ ID, name, isLearner }) => ID !== own?.ID && (isLearner || name === ''))
  if (joining)
    return `${joining.name || `the member at ${joining.peerURLs[0] ?? 'an unknown address'}`} is joining: one member joins at a time`
  const voters = members.filter(({ isLearner }) => !isLearner)
  const others = voters.filter(({ ID }) => ID !== own?.ID)
  const there = others.filter(({ ID }) => answering.has(ID)).length
  const needed = majorityOf(voters.length)
  if (there >= needed) return undefined
  if (others.length < needed)
    return `a majority of ${voters.length} members needs this one: recover the cluster from a snapshot with "talosctl bootstrap --recover-from"`
  return `${there} of the ${others.length} other members answer, and ${needed} have to: bring them back`
}
