/** The cluster as the health checks see it from outside: machines through apid, Kubernetes with the admin kubeconfig. */

import type { KubeClient } from '../../../kube/client.ts'
import type { ClusterView, MachineView } from '../../../os/cluster/health/view.ts'
import type { Cluster } from '../cluster.ts'
import { specOf, specsOf } from '../resource/definition.ts'

const timeout = 10_000

/** Which machines there are. */
export interface Members {
  readonly controlPlanes: readonly string[]
  readonly workers: readonly string[]
  /** Kubernetes is reached here instead of at the server of the kubeconfig. */
  readonly kubernetesEndpoint?: string | undefined
}

/** The view through a connection; call `close` when done. */
export function clusterView(cluster: Cluster, members: Members): ClusterView & { close(): void } {
  let client: Promise<KubeClient> | undefined
  return {
    controlPlanes: members.controlPlanes,
    workers: members.workers,
    machine: (address) => machineView(cluster, address),
    async kubernetes() {
      client ??= kubernetes(cluster, members)
      try {
        return await client
      } catch (error) {
        client = undefined
        throw error
      }
    },
    close() {
      client?.then((open) => open.close()).catch(() => {}) // it never opened
    },
  }
}

/** The members that the cluster itself knows. */
export async function discoverMembers(cluster: Cluster, node?: string): Promise<Members> {
  const controlPlanes: string[] = []
  const workers: string[] = []
  const request = { namespace: 'cluster', type: 'Members.cluster.talos.dev' }
  for await (const { resource } of cluster.stream('cosi.resource.State/List', request, { node, timeout })) {
    const spec = resource ? (specOf(resource) as { machineType?: string; addresses?: string[] } | undefined) : undefined
    const [address] = spec?.addresses ?? []
    if (address) (spec?.machineType === 'worker' ? workers : controlPlanes).push(address)
  }
  return { controlPlanes, workers }
}

function machineView(cluster: Cluster, node: string): MachineView {
  const options = { node, timeout }
  return {
    services: async () => (await cluster.ask('machine.MachineService/ServiceList', {}, options)).flatMap(({ services }) => services),
    etcdMembers: async () =>
      (await cluster.ask('machine.MachineService/EtcdMemberList', { queryLocal: true }, options)).flatMap(({ members }) => members),
    memory: async () => 1024 * ((await cluster.ask('machine.MachineService/Memory', {}, options))[0]?.meminfo?.memtotal ?? 0),
    mounts: async () => (await cluster.ask('machine.MachineService/Mounts', {}, options)).flatMap(({ stats }) => stats),
    resources: (namespace, type) => specsOf(cluster, { namespace, type }, options),
  }
}

async function kubernetes(cluster: Cluster, { controlPlanes, kubernetesEndpoint }: Members): Promise<KubeClient> {
  const { fetchKubeconfig } = await import('../kubeconfig-fetch.ts')
  const { accessOf, parseKubeconfig } = await import('../../../kube/kubeconfig.ts')
  const { kubeClient } = await import('../../../kube/client.ts')
  const access = accessOf(parseKubeconfig(await fetchKubeconfig(cluster, controlPlanes[0])))
  return kubeClient(kubernetesEndpoint ? { ...access, server: kubernetesEndpoint } : access)
}
