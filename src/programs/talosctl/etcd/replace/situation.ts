/** The members of etcd as an operator's computer sees them through the machine API. */
import { hostPortOfUrl } from '../../../../wire/host-port.ts'
import type { Cluster } from '../../cluster.ts'
import { describe } from '../../failure.ts'
import { discoverMembers } from '../../health/view.ts'

const timeout = 5_000

/** A member of etcd and what its node answered. */
export interface MemberView {
  /** 16 hexadecimal digits. */
  readonly id: string
  /** Empty while it has never started. */
  readonly name: string
  readonly address: string
  readonly learner: boolean
  /** Whether it answers, knows a leader and reports no errors. */
  readonly healthy: boolean
  readonly leads: boolean
  /** Whether the machine API of its node answers. */
  readonly reachable: boolean
}

/** Members of etcd, agreed on by a majority, each with its own state. Rejects when no control plane has a majority. */
export async function viewMembers(cluster: Cluster): Promise<MemberView[]> {
  const listed = await listMembers(cluster)
  return Promise.all(
    listed.map(async ({ id, hostname: name, peerUrls, clientUrls, isLearner: learner }) => {
      const address = hostPortOfUrl(clientUrls[0] ?? peerUrls[0] ?? '')?.host ?? ''
      const seen = { healthy: false, leads: false, reachable: false, ...(address && (await viewNode(cluster, address, id))) }
      return { id: hexId(id), name, address, learner, ...seen }
    }),
  )
}

/** 16 hexadecimal digits of a number in decimal text. */
const hexId = (id: string): string => BigInt(id).toString(16).padStart(16, '0')

async function listMembers(cluster: Cluster) {
  const problems: string[] = []
  for (const node of (await discoverMembers(cluster)).controlPlanes) {
    try {
      return (await cluster.ask('machine.MachineService/EtcdMemberList', {}, { node, timeout })).flatMap(({ members }) => members)
    } catch (error) {
      problems.push(`${node}: ${describe(error).trim()}`)
    }
  }
  throw new Error(
    `no control plane lists the members of etcd, so they have no majority: ${problems.join('; ') || 'none is known'}\n` +
      'recover the cluster from a snapshot: "talosctl bootstrap --recover-from"',
  )
}

async function viewNode(cluster: Cluster, node: string, id: string): Promise<Pick<MemberView, 'healthy' | 'leads' | 'reachable'>> {
  const status = cluster.ask('machine.MachineService/EtcdStatus', {}, { node, timeout })
  const version = cluster.ask('machine.MachineService/Version', {}, { node, timeout })
  const [member, machine] = await Promise.allSettled([status, version])
  const own = member.status === 'fulfilled' ? member.value[0]?.memberStatus : undefined
  const healthy = own !== undefined && own?.memberId === id && own.leader !== '0' && own.errors.length === 0
  return { healthy, leads: healthy && own?.leader === id, reachable: own !== undefined || machine.status === 'fulfilled' }
}
