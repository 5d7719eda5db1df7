/** Supervisors monitor each other: the gateway's monitors the nodes' and the discovery server, the nodes' monitor the gateway's. */

import { existsSync } from 'node:fs'
import { startDiscovery, startGatewaySupervisor, startNodeSupervisor } from './detached.ts'
import { Journal } from './journal.ts'
import { clusterPaths, discoveryAddress, discoveryLock, gatewayLock, nodeDirectory, nodePaths, readCluster } from './layout.ts'
import { isHeld } from './lock.ts'
import { isAlive } from './process-identity.ts'
import { readStatus } from './status.ts'

const watchInterval = 2_000

/** What is monitored. */
export type Monitored = 'gateway' | 'nodes'

/** Restarts dead processes periodically; calls `ended` once the cluster is being stopped or destroyed. Returns a function that stops it. */
export function watchSupervisors(directory: string, monitored: Monitored, ended: () => void): () => void {
  const timer = setInterval(() => {
    const { tombstone, stopped, record } = clusterPaths(directory)
    if (existsSync(tombstone) || existsSync(stopped) || !existsSync(record)) return ended()
    if (monitored === 'gateway') reviveGateway(directory)
    else reviveNodes(directory)
  }, watchInterval)
  return () => clearInterval(timer)
}

function reviveGateway(directory: string): void {
  if (!isHeld(gatewayLock(directory))) startGatewaySupervisor(directory, new Journal(clusterPaths(directory).journal))
}

function reviveNodes(directory: string): void {
  const cluster = readCluster(directory)
  if (!cluster) return
  const journal = new Journal(clusterPaths(directory).journal)
  if (cluster.discovery && !isHeld(discoveryLock(directory))) startDiscovery(directory, discoveryAddress(cluster), journal)
  for (const { name } of cluster.nodes) {
    const node = nodeDirectory(directory, name)
    const status = readStatus(nodePaths(node).status)
    // A node without a status is being created; one that was shut down stays down.
    if (status && status.state !== 'stopped' && !isAlive(status.supervisor)) startNodeSupervisor(node, journal)
  }
}
