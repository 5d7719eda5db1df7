import { core, type KubeKind, kubeClient } from '../../../kube/client.ts'
import { accessOf, parseKubeconfig } from '../../../kube/kubeconfig.ts'
import type { Cluster } from '../cluster.ts'
import { fetchKubeconfig } from '../kubeconfig-fetch.ts'
import type { Source } from './collect.ts'

const timeout = 30_000

/** Kubernetes' view of the cluster: its nodes, and the pods of the system. */
export function kubernetesSources(cluster: Cluster, nodes: readonly string[]): Source[] {
  const list = (kind: KubeKind, namespace?: string) => async () => {
    const client = kubeClient(accessOf(parseKubeconfig(await anyKubeconfig(cluster, nodes))))
    try {
      const { items } = await client.list(kind, { namespace }, { signal: AbortSignal.timeout(timeout) })
      return `${Bun.YAML.stringify({ items }, null, 2)}\n`
    } finally {
      client.close()
    }
  }
  return [
    { name: 'kubernetes/nodes.yaml', get: list(core.node) },
    { name: 'kubernetes/system-pods.yaml', get: list(core.pod, 'kube-system') },
  ]
}

/** Only a control plane has one to give. */
async function anyKubeconfig(cluster: Cluster, nodes: readonly string[]): Promise<string> {
  let failure: unknown = new Error('no node was queried')
  for (const node of nodes) {
    try {
      return await fetchKubeconfig(cluster, node)
    } catch (error) {
      failure = error
    }
  }
  throw failure
}
