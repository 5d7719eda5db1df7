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
import { type OutputFlags, structured } from '../output/output.ts'
import { table } from '../output/table.ts'
import { publishedKubernetes } from './engine/reach.ts'

interface ShowFlags extends OutputFlags {
  readonly state: string
  readonly name: string
}

/** Prints a cluster and its nodes; in the table a node that runs has no state. */
export async function showCluster(io: Io, { state, name, output }: ShowFlags): Promise<void> {
  const directory = join(state, name)
  const cluster = readCluster(directory)
  if (!cluster)
    throw new UsageError(
      `there is no cluster "${name}" in "${state}": create it with "talosctl cluster create --name ${name}", or name another folder with --state`,
    )
  const shown = await described(io, directory, cluster)
  if (!structured(io, output, [shown])) io.stdout.write(tablesOf(shown))
}

type Shown = Awaited<ReturnType<typeof described>>

async function described(io: Io, directory: string, cluster: ClusterRecord) {
  const { network } = cluster
  const inEngine = cluster.engine && (await statesInEngine(io, cluster, cluster.engine.socket))
  return {
    provisioner: cluster.machines ? 'qemu' : cluster.engine ? 'docker' : 'container',
    name: cluster.name,
    network: {
      name: cluster.engine ? cluster.name : network.bridge,
      cidrs: networksOf(cluster),
      gateways: [network.gateway, ...(network.second ? [network.second.gateway] : [])],
      mtu: network.mtu,
    },
    kubernetesEndpoint: publishedKubernetes(cluster) ?? `https://${kubernetesAddress(cluster)}`,
    nodes: cluster.nodes.map(({ name, role, ip, secondIp, cpus, memory, disks = [] }) => ({
      name,
      type: role,
      addresses: secondIp ? [ip, secondIp] : [ip],
      milliCpus: cpus,
      memory,
      ...(disks.length > 0 && { disk: disks.reduce((sum, disk) => sum + disk.size, 0) }),
      state: inEngine ? inEngine(name) : nodeState(nodeDirectory(directory, name)),
    })),
  }
}

function tablesOf({ provisioner, name, network, kubernetesEndpoint, nodes }: Shown): string {
  const head = table([
    ['PROVISIONER', provisioner],
    ['NAME', name],
    ['NETWORK NAME', network.name],
    ['NETWORK CIDR', network.cidrs.join(',')],
    ['NETWORK GATEWAY', network.gateways.join(',')],
    ['NETWORK MTU', network.mtu],
    ['KUBERNETES ENDPOINT', kubernetesEndpoint],
  ])
  const rows = nodes.map(({ name: node, type, addresses, milliCpus, memory, disk }) => {
    const size = disk === undefined ? '-' : bytes(disk)
    return [node, type, addresses.join(','), (milliCpus / 1000).toFixed(2), bytes(memory), size]
  })
  const remarks = nodes.filter(({ state }) => state !== 'running').map(({ name: node, state }) => `${node}: ${state}\n`)
  const list = table([['NAME', 'TYPE', 'IP', 'CPU', 'RAM', 'DISK'], ...rows])
  return `${head}\nNODES:\n\n${list}${remarks.length > 0 ? `\n${remarks.join('')}` : ''}`
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
