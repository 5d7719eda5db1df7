/** Whether etcd goes on without this node. */
import type { Machine } from '../../area.ts'
import { MachineType } from '../../config/resources/machine-type.ts'
import { type EtcdClient, hexId, type Member, memberIdOf } from '../../etcd/client.ts'
import { etcdClientOf, localEtcd } from '../../etcd/endpoints.ts'

/** What was found out about etcd's majority. */
export interface Quorum {
  /** The others are enough, or there are none that could miss this one. */
  readonly holds: boolean
  readonly text: string
}

type Parts = Pick<Machine, 'store' | 'supervisor'>

/** Whether this node is a member of a running etcd. */
export function hasEtcd({ store, supervisor }: Parts): boolean {
  const type = store.get(MachineType, 'machine-type')?.spec
  return type !== undefined && type !== 'worker' && supervisor.get('etcd')?.state === 'Running'
}

/** What this node is about to do: be away for a while and stay a member, or leave etcd and be counted no more. */
export type Going = 'is away' | 'leaves'

/** Proves that a majority of voters answers without this node: each of the others is asked itself. */
export async function quorumWithoutSelf({ store }: Pick<Parts, 'store'>, going: Going): Promise<Quorum> {
  const own = localEtcd(store)
  let members: Member[]
  let id: string
  try {
    id = await memberIdOf(own)
    members = await own.members()
  } catch (error) {
    return { holds: false, text: `etcd of this node does not answer (${(error as Error).message}): see "talosctl etcd status"` }
  } finally {
    own.close()
  }
  const answers = await Promise.all(
    members
      .filter((member) => member.ID !== id && !member.isLearner)
      .map(async (member) => ({ member, well: await answersItself(store, member) })),
  )
  return judge(
    answers.map(({ member, well }) => ({ name: member.name || hexId(member.ID), well })),
    members.some((member) => member.ID === id && !member.isLearner),
    going,
  )
}

/** The arithmetic: of those that vote once this node has gone, a majority must be well. A node that leaves still votes for that. */
export function judge(others: readonly { name: string; well: boolean }[], votes: boolean, going: Going): Quorum {
  if (others.length === 0)
    return { holds: true, text: 'etcd has no other voting member: Kubernetes’ API is away while this node starts anew' }
  const voters = others.length + (votes && going === 'is away' ? 1 : 0)
  const needed = Math.floor(voters / 2) + 1
  const well = others.filter((other) => other.well).length
  const ill = others.filter((other) => !other.well).map(({ name }) => name)
  const told = `${well} of ${voters} voting members of etcd are well without this node, ${needed} are needed`
  return { holds: well >= needed, text: ill.length > 0 ? `${told}; not well: ${ill.join(', ')}` : told }
}

async function answersItself(store: Parts['store'], { clientURLs }: Member): Promise<boolean> {
  const endpoints = clientURLs.map((url) => url.replace(/^https?:\/\//, ''))
  if (endpoints.length === 0) return false
  let client: EtcdClient | undefined
  try {
    client = etcdClientOf(store, endpoints)
    await client.quorum(AbortSignal.timeout(10_000))
    return true
  } catch {
    return false
  } finally {
    client?.close()
  }
}
