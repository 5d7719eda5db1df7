/** Keepers look after each other: the gateway's after the nodes' and the discovery server, the nodes' after the gateway's. */

import { existsSync } from 'node:fs'
import { startDiscovery, startGatewayKeeper, startNodeKeeper } from './detached.ts'
import { Journal } from './journal.ts'
import { clusterPaths, discoveryAddress, discoveryLock, gatewayLock, nodeDirectory, nodePaths, readCluster } from './layout.ts'
import { isHeld } from './lock.ts'
import { isAlive } from './process-identity.ts'
import { readStatus } from './status.ts'

const INTERVAL = 2_000

/** What is looked after. */
export type Ward = 'gateway' | 'nodes'

/** Starts again, now and then, whoever died; calls `destroyed` once the cluster is on its way out. Returns how to stop. */
export function watchKeepers(directory: string, ward: Ward, destroyed: () => void): () => void {
  const timer = setInterval(() => {
    if (existsSync(clusterPaths(directory).tombstone) || !existsSync(clusterPaths(directory).record)) return destroyed()
    if (ward === 'gateway') reviveGateway(directory)
    else reviveNodes(directory)
  }, INTERVAL)
  return () => clearInterval(timer)
}

function reviveGateway(directory: string): void {
  if (!isHeld(gatewayLock(directory))) startGatewayKeeper(directory, new Journal(clusterPaths(directory).journal))
}

function reviveNodes(directory: string): void {
  const cluster = readCluster(directory)
  if (!cluster) return
  const journal = new Journal(clusterPaths(directory).journal)
  if (cluster.discovery && !isHeld(discoveryLock(directory))) startDiscovery(directory, discoveryAddress(cluster), journal)
  for (const { name } of cluster.nodes) {
    const node = nodeDirectory(directory, name)
    const status = readStatus(nodePaths(node).status)
    // One that never said a word is being made; one that was shut down is to stay so.
    if (status && status.state !== 'stopped' && !isAlive(status.keeper)) startNodeKeeper(node, journal)
  }
}
