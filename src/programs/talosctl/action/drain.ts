import { core, type KubeClient, kubeClient } from '../../../kube/client.ts'
import { DrainTimeout, drain, uncordon } from '../../../kube/drain.ts'
import { accessOf, parseKubeconfig } from '../../../kube/kubeconfig.ts'
import type { Cluster } from '../cluster.ts'
import type { Io } from '../io.ts'
import { fetchKubeconfig } from '../kubeconfig-fetch.ts'
import { specOf } from '../resource/definition.ts'
import { NodeProgress, type ProgressMode } from './progress.ts'

/**
 * Drains the Kubernetes nodes of the named machines. The returned function lets pods come again to those that this cordoned: the
 * others were cordoned by somebody else. With `force` pods that have not left in time are left to the shutdown of their node.
 */
export async function drainNodes(
  io: Io,
  cluster: Cluster,
  nodes: readonly string[],
  { timeout, progress, force = false }: { timeout: number; progress?: ProgressMode | undefined; force?: boolean | undefined },
): Promise<() => Promise<void>> {
  const client = kubeClient(accessOf(parseKubeconfig(await fetchKubeconfig(cluster, await aControlPlane(cluster, nodes[0])))))
  const shown = new NodeProgress(io, progress ?? 'auto')
  const known = new Map<string, string>()
  for (const node of nodes) known.set(node, await nodename(cluster, node))
  const cordoned: string[] = []
  const readmit = async () => {
    try {
      if (cordoned.length > 0) await withRetries(io, () => uncordonAll(client, cordoned))
    } finally {
      client.close()
    }
  }
  const outcomes = await Promise.allSettled(
    [...known].map(async ([node, name]) => {
      const report = (state: string) => shown.update(node, `draining, ${state}`)
      const note = (byThis: boolean) => (byThis ? cordoned.push(name) : undefined)
      await drain(client, name, { timeout, signal: io.signal, report, cordoned: note }).catch((error) => {
        if (!force || !(error instanceof DrainTimeout)) throw error
        shown.update(node, error.message)
      })
      shown.update(node, 'drained')
    }),
  )
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed) {
    // Nothing is taken down, so all nodes stay in use.
    await readmit()
    throw failed.reason
  }
  return readmit
}

async function uncordonAll(client: KubeClient, names: readonly string[]): Promise<void> {
  const { items } = await client.list(core.node)
  const present = items.map(({ metadata }) => metadata.name)
  for (const name of names) if (present.includes(name)) await uncordon(client, name)
}

/** The API server may be on the node that was rebooted: it is given time to come back. */
async function withRetries(io: Io, act: () => Promise<void>, limit = 180_000): Promise<void> {
  const end = performance.now() + limit
  for (;;) {
    try {
      return await act()
    } catch (error) {
      if (performance.now() > end || io.signal.aborted) throw error
      await io.pause(1000)
    }
  }
}

/** The name a machine has in Kubernetes. */
async function nodename(cluster: Cluster, node: string): Promise<string> {
  const request = { namespace: 'k8s', type: 'Nodenames.kubernetes.talos.dev', id: 'nodename' }
  const { resource } = await cluster.unary('cosi.resource.State/Get', request, { node })
  return (resource && (specOf(resource) as { nodename?: string } | undefined)?.nodename) || node
}

/** A control plane that can give an admin kubeconfig: one of the members, or the node itself. */
async function aControlPlane(cluster: Cluster, node: string | undefined): Promise<string | undefined> {
  const request = { namespace: 'cluster', type: 'Members.cluster.talos.dev' }
  for await (const { resource } of cluster.stream('cosi.resource.State/List', request, { node, timeout: 10_000 })) {
    const spec = resource && (specOf(resource) as { machineType?: string; addresses?: string[] } | undefined)
    if (spec?.machineType !== 'worker' && spec?.addresses?.[0]) return spec.addresses[0]
  }
  return node
}
