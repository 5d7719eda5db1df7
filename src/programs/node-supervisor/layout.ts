/** Where a cluster keeps its things: everything lies below one directory, so that nothing is left when it goes. */

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import * as v from 'valibot'
import { failedWith } from '../../wire/errno.ts'
import { formatHostPort } from '../../wire/host-port.ts'
import { EngineRecord } from './engine-record.ts'
import { diskBuses } from './machine/qemu-arguments.ts'

const address = v.pipe(v.string(), v.ip())
const port = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(65535))
const name = v.pipe(v.string(), v.regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/))
const protocol = v.picklist(['tcp', 'udp'])

/** One node as the cluster wants it. */
export const NodeRecord = v.object({
  name,
  role: v.picklist(['controlplane', 'worker']),
  ip: address,
  /** Its address in the network's second family. */
  secondIp: v.optional(address),
  /** The host's end of the node's cable. */
  link: v.string(),
  /** Processors in thousandths. */
  cpus: v.number(),
  /** Bytes. */
  memory: v.number(),
  ports: v.array(v.object({ hostPort: port, nodePort: port, protocol, address: v.optional(address) })),
  /** Its removal has begun; the next command that changes the cluster finishes it. */
  leaving: v.optional(v.boolean()),
  /** Of a virtual machine: its identity and its disks, sizes in bytes. */
  uuid: v.optional(v.pipe(v.string(), v.uuid())),
  disks: v.optional(v.array(v.object({ bus: v.picklist(diskBuses), size: v.number() }))),
})
export type NodeRecord = v.InferOutput<typeof NodeRecord>

/** How a cluster's virtual machines are made; a cluster without it has containers. */
export const MachinesRecord = v.object({
  /** The folder with what `mkimage.sh` made. */
  images: v.string(),
  /** What a machine whose disk is empty starts from. */
  start: v.picklist(['iso', 'disk-image', 'pxe']),
  firmware: v.picklist(['uefi', 'bios']),
  secureBoot: v.boolean(),
  accelerator: v.picklist(['kvm', 'tcg']),
  /** Port on which the gateway serves machine configurations; only for machines whose kernel's command line names it. */
  configPort: v.optional(port),
})
export type MachinesRecord = v.InferOutput<typeof MachinesRecord>

/** One cluster as it was requested. */
export const ClusterRecord = v.object({
  version: v.literal(1),
  name,
  /** Eight hexadecimal digits that distinguish this cluster's links, cgroups and tables from those of others on the host. */
  id: v.pipe(v.string(), v.regex(/^[0-9a-f]{8}$/)),
  network: v.object({
    cidr: v.string(),
    gateway: address,
    /** The network of the other address family, where nodes have both. */
    second: v.optional(v.object({ cidr: v.string(), gateway: address })),
    mtu: v.number(),
    bridge: v.string(),
    nameservers: v.array(v.string()),
    /** Set when the host's resolver is a loopback address: the nodes then use the gateway as resolver, which forwards to the host's. */
    forwardDns: v.array(v.string()),
  }),
  kubernetes: v.object({ version: v.string(), port, hostPort: port }),
  machineApi: v.object({ hostPort: port }),
  hostAddress: v.string(),
  discovery: v.optional(v.object({ port })),
  /** The file of the nodes' root file system, or the name of their image in a container engine. */
  image: v.string(),
  machines: v.optional(MachinesRecord),
  engine: v.optional(EngineRecord),
  nodes: v.array(NodeRecord),
})
export type ClusterRecord = v.InferOutput<typeof ClusterRecord>

/** The paths of one cluster. */
export function clusterPaths(directory: string) {
  return {
    directory,
    record: join(directory, 'cluster.json'),
    journal: join(directory, 'journal'),
    lock: join(directory, 'lock'),
    /** Written first by destroy; supervisors that see it stop, and none starts any more. */
    tombstone: join(directory, 'destroying'),
    /** Written by stop and removed by start; supervisors that see it shut their node down and restart nothing. */
    stopped: join(directory, 'stopped'),
    rootfs: join(directory, 'rootfs'),
    runc: join(directory, 'runc'),
    secrets: join(directory, 'secrets.yaml'),
    talosconfig: join(directory, 'talosconfig'),
    gateway: join(directory, 'gateway'),
    nodes: join(directory, 'nodes'),
  }
}

/** The paths of one node; a cluster's directory is the grandparent of its nodes'. */
export function nodePaths(nodeDirectory: string) {
  return {
    directory: nodeDirectory,
    cluster: dirname(dirname(nodeDirectory)),
    config: join(nodeDirectory, 'machine.yaml'),
    bundle: join(nodeDirectory, 'bundle'),
    netns: join(nodeDirectory, 'netns'),
    console: join(nodeDirectory, 'console.log'),
    /** The status written by the supervisor: running, stopped, number of restarts. */
    status: join(nodeDirectory, 'status.json'),
    disk: join(nodeDirectory, 'disk'),
  }
}

/** Held by the supervisor of a cluster's gateway. */
export function gatewayLock(directory: string): string {
  return join(clusterPaths(directory).gateway, 'supervisor.lock')
}

/** Held by a cluster's discovery server. */
export function discoveryLock(directory: string): string {
  return join(clusterPaths(directory).gateway, 'discovery.lock')
}

/** Where a cluster's discovery server listens. */
export function discoveryAddress({ network, discovery, engine }: ClusterRecord): string {
  return formatHostPort(engine?.discoveryAddress ?? network.gateway, discovery?.port ?? 0)
}

/** Where nodes reach Kubernetes: at the gateway, or at the first control plane where the gateway is that of an engine. */
export function kubernetesAddress({ network, kubernetes, engine, nodes }: ClusterRecord): string {
  const first = engine && nodes.find(({ role }) => role === 'controlplane')
  return formatHostPort(first?.ip ?? network.gateway, kubernetes.port)
}

/** The networks of a cluster, the first one first. */
export const networksOf = ({ network }: Pick<ClusterRecord, 'network'>): string[] => [
  network.cidr,
  ...(network.second ? [network.second.cidr] : []),
]

/** The directory of a node of a cluster. */
export function nodeDirectory(clusterDirectory: string, node: string): string {
  return join(clusterDirectory, 'nodes', node)
}

/** Reads a cluster's record, or undefined when there is none. */
export function readCluster(directory: string): ClusterRecord | undefined {
  const file = clusterPaths(directory).record
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (failedWith(error, 'ENOENT')) return undefined
    throw error
  }
  const result = v.safeParse(v.pipe(v.string(), v.parseJson(), ClusterRecord), text)
  if (!result.success)
    throw new Error(`read "${file}": not a cluster's record: ${result.issues[0].message}: run "talosctl cluster destroy --force"`)
  return result.output
}

/** Replaces a cluster's record in one step. */
export function writeCluster(directory: string, record: ClusterRecord): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  writeAtomically(clusterPaths(directory).record, `${JSON.stringify(record, null, 2)}\n`)
}

/** Replaces a file in one step, readable by its owner only. */
export function writeAtomically(file: string, text: string | Uint8Array): void {
  writeFileSync(`${file}.next`, text, { mode: 0o600 })
  renameSync(`${file}.next`, file)
}
