/** The Kubernetes node of a machine that is gone. */
import { core, type KubeClient, kubeClient } from '../../../../kube/client.ts'
import { isNotFound, KubeError } from '../../../../kube/errors.ts'
import { accessOf, parseKubeconfig } from '../../../../kube/kubeconfig.ts'
import { formatHostPort } from '../../../../wire/host-port.ts'
import type { Cluster } from '../../cluster.ts'
import { fetchKubeconfig } from '../../kubeconfig-fetch.ts'
import type { Replacement } from './state.ts'

const timeout = 10_000
const apiServerPort = 6443
/** Reasons of errors after which another API server is tried. */
const unanswered = ['Unreachable', 'Timeout']

/** Runs `act` with the first API server that answers: that of the kubeconfig may be on the machine that is gone. */
export async function withKubernetes<T>(
  cluster: Cluster,
  controlPlanes: readonly string[],
  endpoint: string | undefined,
  act: (kubernetes: KubeClient) => Promise<T>,
): Promise<T> {
  const access = accessOf(parseKubeconfig(await fetchKubeconfig(cluster, controlPlanes[0])))
  const others = controlPlanes.map((address) => `https://${formatHostPort(address, apiServerPort)}`)
  const servers = endpoint ? [endpoint] : [access.server, ...others]
  let last: unknown
  for (const server of servers) {
    const kubernetes = kubeClient({ ...access, server })
    try {
      return await act(kubernetes)
    } catch (error) {
      if (!(error instanceof KubeError) || !unanswered.includes(error.reason)) throw error
      last = error
    } finally {
      kubernetes.close()
    }
  }
  throw last
}

/** The node with this address, or of this name; undefined when there is none. */
export async function nodeOf(
  kubernetes: KubeClient,
  { name, address }: Pick<Replacement, 'name' | 'address'>,
): Promise<Replacement['node']> {
  const { items } = await kubernetes.list(core.node, {}, { timeout })
  const addresses = (status: unknown) => (status as { addresses?: { address: string }[] } | undefined)?.addresses ?? []
  const found =
    items.find(({ status }) => address !== '' && addresses(status).some((one) => one.address === address)) ??
    items.find(({ metadata }) => metadata.name === name)
  return found && { name: found.metadata.name ?? name, uid: found.metadata.uid ?? '' }
}

/** Deletes a node, unless another of the same name has taken its place. */
export async function deleteNode(kubernetes: KubeClient, { name, uid }: NonNullable<Replacement['node']>): Promise<void> {
  try {
    const present = await kubernetes.get(core.node, name, undefined, { timeout })
    if (present.metadata.uid === uid) await kubernetes.delete(core.node, name, undefined, { timeout })
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}
