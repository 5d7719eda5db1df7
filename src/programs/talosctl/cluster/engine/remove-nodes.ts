import { type ClusterRecord, type NodeRecord, writeCluster } from '../../../node-supervisor/layout.ts'
import { leaveCluster } from '../leave.ts'
import { type Credentials, fetchKubeconfig, resetNode } from '../node-api.ts'
import type { Progress } from '../progress.ts'
import type { Engine } from './client.ts'
import { hasEnded, removeContainer } from './provision.ts'
import { machineEndpoints, reachableKubeconfig } from './reach.ts'

/** What is removed, and as whom. */
export interface Removal {
  readonly directory: string
  readonly cluster: ClusterRecord
  readonly removed: readonly NodeRecord[]
  readonly credentials: Credentials
  readonly progress: Progress
}

/** Lets nodes leave their cluster in good order, then takes their containers away. */
export async function removeNodes(engine: Engine, { directory, cluster, removed, credentials, progress }: Removal): Promise<ClusterRecord> {
  if (removed.length === 0) return cluster
  const [endpoint = ''] = machineEndpoints(cluster)
  const { signal } = engine
  const kubeconfig = await reachableKubeconfig(cluster, await fetchKubeconfig(endpoint, credentials, signal))
  let current = cluster
  for (const { name, ip } of removed) {
    await progress.phase(`remove ${name}`, async (report) => {
      await leaveCluster({
        node: name,
        kubeconfig,
        signal,
        isDown: () => hasEnded(engine, name),
        reset: () => resetNode(endpoint, credentials, signal, ip),
        console: `the log of container "${name}"`,
        report,
      })
      report('destroy')
      await removeContainer(engine, name)
      current = { ...current, nodes: current.nodes.filter((node) => node.name !== name) }
      writeCluster(directory, current)
    })
  }
  return current
}
