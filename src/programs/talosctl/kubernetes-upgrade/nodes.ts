/** The nodes of an upgrade, and the version that the cluster has. */
import { core, type KubeClient } from '../../../kube/client.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { hasEnded } from '../../../kube/pod.ts'
import type { Cluster } from '../cluster.ts'
import { UsageError } from '../failure.ts'
import { compareVersions, unsupportedBy, type Version, versionOf, versionOfImage } from './versions.ts'

/** A node whose Kubernetes is upgraded. */
export interface UpgradedNode {
  readonly address: string
  /** The name of its Node. */
  readonly name: string
  readonly controlPlane: boolean
}

/** By how many minor versions a kubelet may be older than an API server. */
const kubeletSkew = 3

/** Reads the nodes, in the order in which they are changed: control planes first. Throws if a kubelet cannot work with the version. */
export async function nodesOf(kubernetes: KubeClient, to: Version): Promise<UpgradedNode[]> {
  const { items } = await kubernetes.list(core.node)
  checkKubelets(items, to)
  const nodes = items.map((node) => ({
    address: addressOf(node),
    name: node.metadata.name ?? '',
    controlPlane: node.metadata.labels?.['node-role.kubernetes.io/control-plane'] !== undefined,
  }))
  const shared = nodes.find(({ address, name }) => nodes.some((other) => other.address === address && other.name !== name))
  if (shared)
    throw new UsageError(`node "${shared.name}" has the same address as another one, ${shared.address}: remove the Node that is gone`)
  const controlPlanes = nodes.filter(({ controlPlane }) => controlPlane)
  if (controlPlanes.length === 0) throw new UsageError('no node has the label node-role.kubernetes.io/control-plane')
  return [...controlPlanes, ...nodes.filter(({ controlPlane }) => !controlPlane)]
}

function checkKubelets(nodes: readonly KubeObject[], to: Version): void {
  const reasons = nodes.flatMap(({ metadata, status }) => {
    const { kubeletVersion = '' } = (status as { nodeInfo?: { kubeletVersion?: string } } | undefined)?.nodeInfo ?? {}
    const version = versionOf(kubeletVersion)
    if (!version || (version.minor <= to.minor && version.minor >= to.minor - kubeletSkew)) return []
    const limit = version.minor > to.minor ? 'newer than' : `more than ${kubeletSkew} minor versions older than`
    return [`${metadata.name}: its kubelet is ${kubeletVersion}, ${limit} ${to.text}, which API servers do not support`]
  })
  if (reasons.length > 0) throw new UsageError(reasons.join('\n'))
}

function addressOf({ metadata, status }: KubeObject): string {
  const { addresses = [] } = (status ?? {}) as { addresses?: { type: string; address: string }[] }
  const found = addresses.find(({ type }) => type === 'InternalIP') ?? addresses.find(({ type }) => type === 'ExternalIP')
  if (!found) throw new UsageError(`node "${metadata.name}" has no address`)
  return found.address
}

const components = ['kube-apiserver', 'kube-controller-manager', 'kube-proxy', 'kube-scheduler']

/** The lowest version with which a component runs. */
export async function detectVersion(kubernetes: KubeClient): Promise<Version> {
  const { items } = await kubernetes.list(core.pod, { namespace: 'kube-system' })
  const versions = items
    .filter((pod) => !hasEnded(pod))
    .flatMap(({ metadata, spec }) => {
      const component = metadata.labels?.['k8s-app'] ?? ''
      if (!components.includes(component)) return []
      const { containers = [] } = (spec ?? {}) as { containers?: { name: string; image?: string }[] }
      return versionOfImage(containers.find(({ name }) => name === component)?.image ?? '') ?? []
    })
  const [lowest] = versions.toSorted(compareVersions)
  if (!lowest) throw new UsageError('the version of the cluster cannot be read from its pods: name it with --from')
  return lowest
}

/** Throws unless the system of every node runs the version. */
export async function checkSystems(cluster: Cluster, nodes: readonly UpgradedNode[], to: Version): Promise<void> {
  const reasons = await Promise.all(
    nodes.map(async ({ address, name }) => {
      const [reply] = await cluster.ask('machine.MachineService/Version', {}, { node: address, timeout: 10_000 })
      const reason = unsupportedBy(reply?.version?.tag ?? '', to)
      return reason === undefined ? [] : [`${name}: ${reason}`]
    }),
  )
  if (reasons.flat().length > 0) throw new UsageError(reasons.flat().join('\n'))
}
