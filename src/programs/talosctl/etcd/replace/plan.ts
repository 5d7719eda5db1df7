/** Decides whether a member may be replaced, and describes what that takes. */
import { majorityOf } from '../../../../os/etcd/majority.ts'
import { UsageError } from '../../failure.ts'
import type { MemberView } from './situation.ts'

/** A member and all others. */
export interface Candidates {
  readonly gone: MemberView
  readonly others: readonly MemberView[]
}

/** The member that an id, a host name or an address means; undefined when there is none. Throws when it means several. */
export function memberOf(members: readonly MemberView[], which: string): MemberView | undefined {
  const id = which.replace(/^0x/i, '').toLowerCase().padStart(16, '0')
  const found = members.filter((member) => member.id === id || member.name === which || member.address === which)
  if (found.length > 1) throw new UsageError(`"${which}" means ${found.map((one) => one.id).join(' and ')}: give the id of one member`)
  return found[0]
}

/** Why the member must not be removed; undefined when it may be. */
export function refusalOf({ gone, others }: Candidates): string | undefined {
  const name = labelOf(gone)
  if (gone.healthy) return `${name} answers: remove a member that lives with "talosctl -n ${gone.address} reset"`
  if (gone.reachable)
    return (
      `the machine of ${name} answers, though its etcd does not: "talosctl -n ${gone.address} explain" shows why; ` +
      `reset it ("talosctl -n ${gone.address} reset --graceful=false") or switch it off first`
    )
  const voters = others.filter(({ learner }) => !learner)
  const healthy = voters.filter((member) => member.healthy)
  const present = voters.length + (gone.learner ? 0 : 1)
  // Both the members of now, who agree on the removal, and those who remain need their majority.
  const needed = Math.max(majorityOf(present), majorityOf(voters.length))
  if (voters.length > 0 && healthy.length >= needed) return undefined
  const silent = voters.filter((member) => !member.healthy)
  const bringBack = silent.length > 0 ? `bring back ${silent.map(labelOf).join(', ')}` : 'add a control plane'
  return `${healthy.length} of the ${present} voting members are healthy, and removing ${name} needs ${needed}: ${bringBack} first`
}

/** A member as messages name it. */
export const labelOf = ({ id, name, address }: Pick<MemberView, 'id' | 'name' | 'address'>): string =>
  `${name || 'a member that never started'} (${[address, id].filter(Boolean).join(', ')})`

/** The lines that describe what would be done. */
export function planOf(
  { gone, others }: Candidates,
  node: string | undefined,
  replacement: string | undefined,
  configured = false,
): string[] {
  const state = ({ learner, healthy, leads }: MemberView) =>
    [learner ? 'joins' : leads ? 'leads' : 'votes', healthy ? 'healthy' : 'does not answer'].join(', ')
  return [
    `gone: ${labelOf(gone)}: neither its etcd nor its machine answers`,
    ...others.map((member) => `stays: ${labelOf(member)}: ${state(member)}`),
    '1. remove the member from etcd',
    node ? `2. delete the Kubernetes node ${node}` : '2. nothing to delete in Kubernetes: it has no node of this name or address',
    ...(configured ? [`3. apply the configuration to ${replacement} while it waits in maintenance`] : []),
    `${configured ? 4 : 3}. wait until ${replacement ?? 'a new control plane'} is a voting member of etcd and healthy`,
    'a machine that was only cut off joins again as a new member when it returns: make sure that it is off',
  ]
}
