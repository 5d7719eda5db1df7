import { join } from 'node:path'
import { messageOf } from '../../../wire/error-message.ts'
import {
  type ClusterRecord,
  clusterPaths,
  kubernetesAddress,
  networksOf,
  nodeDirectory,
  nodePaths,
  readCluster,
} from '../../node-supervisor/layout.ts'
import { isAlive } from '../../node-supervisor/process-identity.ts'
import { readStatus } from '../../node-supervisor/status.ts'
import { UsageError } from '../failure.ts'
import type { Io } from '../io.ts'
import { table } from '../output/table.ts'
import { publishedKubernetes } from './engine/reach.ts'

/** What `cluster show` prints of a cluster. */
export async function showCluster(io: Io, state: string, name: string): Promise<string> {
  const directory = join(state, name)
  const cluster = readCluster(directory)
  if (!cluster)
    throw new UsageError(
      `there is no cluster "${name}" in "${state}": create it with "talosctl cluster create --name ${name}", or name another folder with --state`,
    )
  const { network } = cluster
  const head = table([
    ['PROVISIONER', cluster.machines ? 'qemu' : cluster.engine ? 'docker' : 'container'],
    ['NAME', cluster.name],
    ['NETWORK NAME', cluster.engine ? cluster.name : network.bridge],
    ['NETWORK CIDR', networksOf(cluster).join(',')],
    ['NETWORK GATEWAY', [network.gateway, ...(network.second ? [network.second.gateway] : [])].join(',')],
    ['NETWORK MTU', network.mtu],
    ['KUBERNETES ENDPOINT', publishedKubernetes(cluster) ?? `https://${kubernetesAddress(cluster)}`],
  ])
  const rows = cluster.nodes.map(({ name: node, role, ip, secondIp, cpus, memory, disks = [] }) => {
    const size = disks.reduce((sum, disk) => sum + disk.size, 0)
    return [node, role, secondIp ? `${ip},${secondIp}` : ip, (cpus / 1000).toFixed(2), bytes(memory), disks.length > 0 ? bytes(size) : '-']
  })
  const inEngine = cluster.engine && (await statesInEngine(io, cluster, cluster.engine.socket))
  const remarks = cluster.nodes
    .map(({ name: node }) => [node, inEngine ? inEngine(node) : nodeState(nodeDirectory(directory, node))])
    .filter(([, state]) => state !== 'running')
    .map(([node, state]) => `${node}: ${state}\n`)
  const nodes = table([['NAME', 'TYPE', 'IP', 'CPU', 'RAM', 'DISK'], ...rows])
  return `${head}\nNODES:\n\n${nodes}${remarks.length > 0 ? `\n${remarks.join('')}` : ''}`
}

/** The states of containers; where the engine does not answer, the reason is that of every node. */
async function statesInEngine(io: Io, { name }: ClusterRecord, socket: string): Promise<(node: string) => string> {
  const { Engine } = await import('./engine/client.ts')
  const { containersOf, nameOf } = await import('./engine/provision.ts')
  try {
    const present = await containersOf(await Engine.open(socket, io.signal), name)
    const states = new Map(present.map((one) => [nameOf(one), one.State || 'unknown']))
    return (node) => states.get(node) ?? 'no container'
  } catch (error) {
    io.signal.throwIfAborted()
    return () => messageOf(error)
  }
}

/** The state of a node as reported by its supervisor, or that there is none. */
export function nodeState(directory: string): string {
  const status = readStatus(nodePaths(directory).status)
  if (!status) return 'not started'
  if (status.state !== 'stopped' && !isAlive(status.supervisor)) return 'no supervisor'
  const restarts = status.restarts > 0 ? `, restarted ${status.restarts} times` : ''
  return `${status.state}${restarts}${status.last ? ` (${status.last})` : ''}`
}

/** Whether the supervisors of a cluster's gateway and of all nodes are alive. */
export function isRunning(directory: string): boolean {
  const cluster = readCluster(directory)
  if (!cluster) return false
  return cluster.nodes.every((node) => {
    const status = readStatus(nodePaths(nodeDirectory(clusterPaths(directory).directory, node.name)).status)
    return status !== undefined && status.state !== 'stopped' && isAlive(status.supervisor)
  })
}

/** Powers of a thousand with one decimal below ten, as the field prints them. */
function bytes(count: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let power = 0
  let value = count
  for (; value >= 1000 && power < units.length - 1; power++) value /= 1000
  return `${value < 10 && power > 0 ? value.toFixed(1) : Math.round(value)} ${units[power]}`
}
