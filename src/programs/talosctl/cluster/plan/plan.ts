/** Turns a request into a cluster's record: names, addresses, links, and which nodes are added or removed. */

import { createHash, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { formatPrefix, nthAddress } from '../../../../wire/prefix.ts'
import type { EngineRecord, MountRecord } from '../../../node-supervisor/engine-record.ts'
import type { ClusterRecord, MachinesRecord, NodeRecord } from '../../../node-supervisor/layout.ts'
import { UsageError } from '../../failure.ts'
import { type Networks, parseCidr, sizeOf } from '../host/cidr.ts'
import type { ExposedPort } from '../host/exposed-ports.ts'
import type { MachinesRequest } from '../qemu/request.ts'

/** How a node of one role is made. */
export interface RoleRequest {
  count: number
  /** Thousandths of a processor. */
  cpus: number
  /** Bytes. */
  memory: number
}

/** The user's request, parsed. */
export interface ClusterRequest {
  name: string
  state: string
  networks: Networks
  mtu: number
  controlplanes: RoleRequest
  workers: RoleRequest
  kubernetesVersion: string
  kubernetesPort: number
  exposedPorts: ExposedPort[]
  hostAddress: string
  nameservers: string[]
  forwardDns: string[]
  discovery: boolean
  image: string
  /** Whether nodes stay in maintenance, to be configured by hand. */
  unconfigured: boolean
  /** Of virtual machines; without it nodes are containers. */
  machines?: MachinesRequest | undefined
  /** Of containers of Docker or Podman. */
  engine?: EngineRequest | undefined
}

/** What only nodes in Docker or Podman have. */
export interface EngineRequest {
  /** A file, or a name; by default the image of this release. */
  image: string | undefined
  mounts: MountRecord[]
  disableIPv6: boolean
}

/** What was found on the host: ports that are free for the cluster's interfaces, and how its virtual machines run, or which engine has its containers. */
export interface Found {
  kubernetes: number
  machineApi: number
  accelerator?: MachinesRecord['accelerator']
  engine?: EngineRecord
}

const discoveryPort = 3000
const configServerPort = 3001
const mib = 1024 * 1024
// The memory floors of the machine itself, less what firmware and kernel take of it.
const minimumMemory = { controlplane: (2048 - 200) * mib, worker: (1024 - 150) * mib }

/** The id that keeps this cluster's things apart from those of every other on the host. */
export function clusterId(state: string, name: string): string {
  return createHash('sha256').update(join(state, name)).digest('hex').slice(0, 8)
}

/** A cluster that does not exist yet. */
export function planCluster(request: ClusterRequest, ports: Found): ClusterRecord {
  const { name, state, networks, mtu } = request
  checkName(name)
  if (request.controlplanes.count < 1) throw new UsageError('--controlplanes: a cluster needs at least one control plane')
  const id = clusterId(state, name)
  const { first, second } = networks
  const gateway = nthAddress(first, 1)
  const empty: ClusterRecord = {
    version: 1,
    name,
    id,
    network: {
      cidr: formatPrefix(first),
      gateway,
      ...(second && { second: { cidr: formatPrefix(second), gateway: nthAddress(second, 1) } }),
      mtu,
      bridge: `ichor${id}`,
      nameservers: request.forwardDns.length > 0 ? [gateway] : request.nameservers,
      forwardDns: request.forwardDns,
    },
    kubernetes: { version: request.kubernetesVersion, port: request.kubernetesPort, hostPort: ports.kubernetes },
    machineApi: { hostPort: ports.machineApi },
    hostAddress: request.hostAddress,
    discovery: request.discovery ? { port: discoveryPort } : undefined,
    image: request.image,
    machines: request.machines && planMachines(request.machines, ports),
    engine: ports.engine,
    nodes: [],
  }
  const { added } = planChange(empty, request)
  const [leader, ...others] = added
  if (!leader) throw new UsageError('--controlplanes: a cluster needs at least one control plane')
  return { ...empty, nodes: [{ ...leader, ports: request.exposedPorts }, ...others] }
}

/** Which nodes to add and remove to reach the requested counts; the last ones are removed first. */
export function planChange(cluster: ClusterRecord, request: ClusterRequest): { added: NodeRecord[]; removed: NodeRecord[] } {
  checkMemory(request)
  if (request.controlplanes.count < 1) throw new UsageError('--controlplanes: a cluster needs at least one control plane')
  const added: NodeRecord[] = []
  const removed: NodeRecord[] = []
  const { cidr, gateway, second } = cluster.network
  const roles = [
    ['controlplane', request.controlplanes],
    ['worker', request.workers],
  ] as const
  for (const [role, { count, cpus, memory }] of roles) {
    const present = cluster.nodes.filter((node) => node.role === role && !node.leaving)
    removed.push(...cluster.nodes.filter((node) => node.role === role && node.leaving), ...present.slice(count))
    for (let missing = count - present.length; missing > 0; missing--) {
      const taken = [...cluster.nodes, ...added]
      const reserved = [gateway, ...(cluster.engine ? [cluster.engine.discoveryAddress] : [])]
      const name = freeName(cluster.name, role, taken)
      added.push({
        name,
        role,
        ip: freeAddress(cidr, reserved, taken),
        ...(second && { secondIp: freeAddress(second.cidr, [second.gateway], taken) }),
        link: linkName(cluster.id, name),
        cpus,
        memory,
        ports: [],
        ...(request.machines && { uuid: randomUUID(), disks: request.machines.disks }),
      })
    }
  }
  return { added, removed }
}

function planMachines({ images, start, firmware, secureBoot }: MachinesRequest, { accelerator = 'tcg' }: Found): MachinesRecord {
  return { images, start, firmware, secureBoot, accelerator, ...(start === 'pxe' && { configPort: configServerPort }) }
}

/** The name of the host's end of a node's cable, within the 15 bytes that a link's name may have. */
export function linkName(id: string, node: string): string {
  return `ich${createHash('sha256').update(`${id}/${node}`).digest('hex').slice(0, 10)}`
}

/** Refuses a name that could not be part of host names, links and paths. */
export function checkName(name: string): void {
  if (!/^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$/.test(name)) {
    throw new UsageError(`--name "${name}": use up to 40 small letters, digits and dashes, starting with a letter`)
  }
}

function checkMemory({ controlplanes, workers }: ClusterRequest): void {
  if (controlplanes.memory < minimumMemory.controlplane) throw new UsageError('--memory: a control plane needs at least 2GiB')
  if (workers.count > 0 && workers.memory < minimumMemory.worker) throw new UsageError('--memory-workers: a worker needs at least 1GiB')
}

function freeName(cluster: string, role: NodeRecord['role'], taken: readonly NodeRecord[]): string {
  for (let number = 1; ; number++) {
    const name = `${cluster}-${role}-${number}`
    if (!taken.some((node) => node.name === name)) return name
  }
}

function freeAddress(network: string, reserved: readonly string[], taken: readonly NodeRecord[]): string {
  const cidr = parseCidr(network)
  for (let n = 2; n < sizeOf(cidr) - 1; n++) {
    const address = nthAddress(cidr, n)
    if (!reserved.includes(address) && !taken.some(({ ip, secondIp }) => ip === address || secondIp === address)) return address
  }
  throw new UsageError(`network ${network} has no address left: ask for fewer nodes, or create the cluster with a larger --cidr`)
}
