/** Replaces an etcd member whose machine is gone: removes it and its node, and waits until another control plane has its place. */
import type { Cluster } from '../../cluster.ts'
import { describe, UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { atEndpoints, checkHealthy } from '../../machine/machine.ts'
import { within } from '../../machine/within.ts'
import { deleteNode, nodeOf, withKubernetes } from './kubernetes.ts'
import { configureWaiting, type Newcomer, newcomerOf } from './newcomer.ts'
import { labelOf, memberOf, planOf, refusalOf } from './plan.ts'
import { type MemberView, viewMembers } from './situation.ts'
import { endReplacement, findReplacement, type Replacement, replacementFolder, saveReplacement } from './state.ts'

/** Flags of the command. */
export interface ReplaceOptions {
  readonly dryRun: boolean
  /** Host name or address of the machine that takes the place; by default any new one. */
  readonly with?: string
  /** File with the configuration that this machine gets while it waits in maintenance. */
  readonly configFile?: string
  /** Fingerprints of the certificate of which one has to be that machine's in maintenance. */
  readonly certFingerprint?: string[]
  /** Milliseconds. */
  readonly timeout: number
  readonly k8sEndpoint?: string
}

/** A replacement that could not be completed. Nothing is lost: the same command continues. */
class ReplacementStopped extends Error {
  override name = 'ReplacementStopped'
}

/** talosctl etcd replace-member */
export const replaceMember = (io: Io, cluster: Cluster, which: string, options: ReplaceOptions): Promise<void> =>
  atEndpoints(io, cluster, async (own) => {
    const members = await viewMembers(own)
    const newcomer = await newcomerOf(io, own, members, options)
    const gone = memberOf(members, which)
    const folder = replacementFolder(io.env)
    const begun = await findReplacement(
      folder,
      which,
      members.map(({ id }) => id),
    )
    if (!gone && !begun)
      throw new UsageError(`etcd has no member "${which}", only ${members.map(labelOf).join(', ')}: give an id, a host name or an address`)
    if (begun && gone?.id !== begun.id) {
      io.stdout.write(`${labelOf(begun)} was removed before: this continues\n`)
      return options.dryRun ? dryRun(io) : complete(io, own, begun, members, folder, { ...options, newcomer })
    }
    if (!gone) return
    const others = members.filter(({ id }) => id !== gone.id)
    const refusal = refusalOf({ gone, others })
    if (refusal !== undefined) throw new UsageError(refusal)
    const node = await withKubernetes(own, addresses(others), options.k8sEndpoint, (kubernetes) => nodeOf(kubernetes, gone))
    io.stdout.write(`${planOf({ gone, others }, node?.name, options.with, newcomer !== undefined).join('\n')}\n`)
    if (options.dryRun) return dryRun(io)
    const { id, name, address } = gone
    const replacement: Replacement = { id, name, address, others: others.map((member) => member.id), ...(node && { node }) }
    await saveReplacement(folder, replacement)
    await remove(own, others, id)
    io.stdout.write(`${labelOf(gone)} was removed from etcd\n`)
    await complete(io, own, replacement, others, folder, { ...options, newcomer })
  })

const dryRun = (io: Io): void => {
  io.stdout.write('nothing was changed: run it with --dry-run=false\n')
}

const addresses = (members: readonly MemberView[]): string[] =>
  members.filter(({ healthy, learner }) => healthy && !learner).map(({ address }) => address)

/** Through a healthy member. */
async function remove(cluster: Cluster, others: readonly MemberView[], id: string): Promise<void> {
  const memberId = BigInt(`0x${id}`).toString()
  const [node] = addresses(others)
  await cluster.ask('machine.MachineService/EtcdRemoveMemberByID', { memberId }, { node, timeout: 60_000 })
}

/** What follows the removal. */
async function complete(
  io: Io,
  cluster: Cluster,
  replacement: Replacement,
  members: readonly MemberView[],
  folder: string,
  { with: wanted, timeout, k8sEndpoint, newcomer }: ReplaceOptions & { newcomer: Newcomer | undefined },
): Promise<void> {
  try {
    const { node } = replacement
    if (node) {
      await withKubernetes(cluster, addresses(members), k8sEndpoint, (kubernetes) => deleteNode(kubernetes, node))
      io.stdout.write(`node ${node.name} was deleted from Kubernetes\n`)
    }
    io.stdout.write(`waiting for ${wanted ?? 'a new control plane'} to join\n`)
    const joined = await within(io, timeout, `${wanted ?? 'a new control plane'} as a voting member`, async () => {
      const found = await replacedBy(cluster, replacement, wanted).catch(async (error: unknown) => {
        if (newcomer && (await configureWaiting(io, newcomer))) io.stdout.write(`${newcomer.address} has its configuration\n`)
        throw error
      })
      await checkHealthy(cluster, found.address, 'etcd')
      await checkHealthy(cluster, found.address, 'kubelet')
      return found
    })
    io.stdout.write(`${labelOf(joined)} has taken the place of ${labelOf(replacement)}\n`)
  } catch (error) {
    throw new ReplacementStopped(`${describe(error).replace(/\n*$/, '')}\nrun the same command again: it continues from here`, {
      cause: error,
    })
  }
  await endReplacement(folder, replacement)
}

/** The member that has the place now; throws what is missing. A machine that is named may have joined before. */
async function replacedBy(cluster: Cluster, { id, others }: Replacement, wanted: string | undefined): Promise<MemberView> {
  const members = await viewMembers(cluster)
  const found = wanted ? memberOf(members, wanted) : members.find((member) => member.id !== id && !others.includes(member.id))
  if (!found) throw new Error('it has not joined yet')
  if (found.learner) throw new Error(`${labelOf(found)} is a learner`)
  if (!found.healthy) throw new Error(`etcd of ${labelOf(found)} does not answer`)
  return found
}
