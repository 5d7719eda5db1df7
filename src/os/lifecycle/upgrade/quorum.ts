/** Checks whether etcd keeps its quorum without this node. */
import { messageOf } from '../../../wire/error-message.ts'
import type { Machine } from '../../area.ts'
import { MachineType } from '../../config/resources/machine-type.ts'
import { type EtcdClient, etcdClientOf, hexId, localEtcd, type Member, memberIdOf } from '../../etcd/public.ts'

/** The result of the check. */
export interface Quorum {
  /** The other members have a quorum, or there are no others. */
  readonly holds: boolean
  readonly text: string
}

type Dependencies = Pick<Machine, 'store' | 'supervisor'>

/** Whether this node is a member of a running etcd. */
export function hasEtcd({ store, supervisor }: Dependencies): boolean {
  const type = store.get(MachineType, 'machine-type')?.spec
  return type !== undefined && type !== 'worker' && supervisor.get('etcd')?.state === 'Running'
}

/** What this node is about to do: go offline as a member, or leave etcd. */
export type Going = 'away' | 'leaving'

/** Checks that a majority of voting members answers without this node, by querying each of the others. */
export async function quorumWithoutSelf({ store }: Pick<Dependencies, 'store'>, going: Going): Promise<Quorum> {
  const own = localEtcd(store)
  let members: Member[]
  let id: string
  try {
    id = await memberIdOf(own)
    members = await own.members()
  } catch (error) {
    return { holds: false, text: `etcd of this node does not answer (${messageOf(error)}): see "talosctl etcd status"` }
  } finally {
    own.close()
  }
  const answers = await Promise.all(
    members
      .filter((member) => member.ID !== id && !member.isLearner)
      .map(async (member) => ({ member, healthy: await answersItself(store, member) })),
  )
  return judge(
    answers.map(({ member, healthy }) => ({ name: member.name || hexId(member.ID), healthy })),
    members.some((member) => member.ID === id && !member.isLearner),
    going,
  )
}

/** Computes the quorum: a majority of the voters that remain must be healthy. A leaving node still votes for its own removal. */
export function judge(others: readonly { name: string; healthy: boolean }[], votes: boolean, going: Going): Quorum {
  if (others.length === 0)
    return { holds: true, text: 'etcd has no other voting member: the Kubernetes API is unavailable while this node reboots' }
  const voters = others.length + (votes && going === 'away' ? 1 : 0)
  const needed = Math.floor(voters / 2) + 1
  const healthy = others.filter((other) => other.healthy).length
  const unhealthy = others.filter((other) => !other.healthy).map(({ name }) => name)
  const text = `${healthy} of ${voters} voting members of etcd are healthy without this node, ${needed} are needed`
  return { holds: healthy >= needed, text: unhealthy.length > 0 ? `${text}; unhealthy: ${unhealthy.join(', ')}` : text }
}

async function answersItself(store: Dependencies['store'], { clientURLs }: Member): Promise<boolean> {
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
