/** The machines of a rotation: which there are, their configurations, and the resources and files that prove what they use. */
import type { ConfigContainer } from '../../../os/config/container.ts'
import { parseConfig } from '../../../os/config/parse.ts'
import { Cluster } from '../cluster.ts'
import { describe, UsageError } from '../failure.ts'
import { discoverMembers } from '../health/view.ts'
import type { Io } from '../io.ts'
import { applyTo } from '../machine-config/applying.ts'
import { machineConfig } from '../machine-config/machine-config.ts'
import { specOf } from '../resource/definition.ts'

const timeout = 10_000

/** Addresses of all machines of a cluster. */
export interface Machines {
  readonly controlPlanes: readonly string[]
  readonly workers: readonly string[]
}

/** The flags that name them. */
export interface MachineFlags {
  readonly initNode?: string
  readonly controlPlaneNodes?: string[]
  readonly workerNodes?: string[]
}

/** The machines that the flags name, else the members that the cluster knows. A rotation that left one out would cut it off. */
export async function machinesOf(
  cluster: Cluster,
  { initNode, controlPlaneNodes = [], workerNodes = [] }: MachineFlags,
): Promise<Machines> {
  const named = [...(initNode ? [initNode] : []), ...controlPlaneNodes]
  if (named.length === 0 && workerNodes.length > 0) throw new UsageError('--worker-nodes needs --control-plane-nodes beside it')
  if (named.length > 0) return { controlPlanes: [...new Set(named)], workers: [...new Set(workerNodes)] }
  const { controlPlanes, workers } = await discoverMembers(cluster)
  if (controlPlanes.length === 0)
    throw new UsageError('no members are known to the cluster: name all machines with --control-plane-nodes and --worker-nodes')
  return { controlPlanes: controlPlanes.toSorted(), workers: workers.toSorted() }
}

/** Runs `act` with the same endpoints without the nodes of the client configuration: a rotation names the machine in each call. */
export async function atEndpoints<T>(io: Io, cluster: Cluster, act: (own: Cluster) => Promise<T>): Promise<T> {
  const own = new Cluster(io, { ...(await cluster.target()), nodes: [] })
  try {
    return await act(own)
  } finally {
    await own.close()
  }
}

/** All machines, in the order in which a round changes them. */
export const inOrder = ({ controlPlanes, workers }: Machines): readonly string[] => [...controlPlanes, ...workers]

/** The configuration that a machine has. */
export async function readConfig(cluster: Cluster, node: string): Promise<ConfigContainer> {
  return parseConfig(await machineConfig(cluster, node))
}

/** Applies a configuration without a reboot, and confirms it over a new connection where the machine requires that. */
export async function applyConfig(io: Io, cluster: Cluster, node: string, config: ConfigContainer): Promise<void> {
  // What the machine answers is about every change alike: the rotation reports its own progress.
  const silenced: Io = { ...io, signal: io.signal, pause: (time) => io.pause(time), stderr: { ...io.stderr, write: () => {} } }
  await applyTo(silenced, cluster, config.bytes, { mode: 'no-reboot', timeout: 60_000 }, node)
}

/** The spec of a machine's resource. */
export async function resourceOf<T>(cluster: Cluster, node: string, namespace: string, type: string, id: string): Promise<T> {
  const { resource } = await cluster.unary('cosi.resource.State/Get', { namespace, type, id }, { node, timeout })
  if (!resource) throw new Error(`${node}: there is no ${type}/${id}`)
  return specOf(resource) as T
}

/** A small file of a machine, as text. */
export async function fileOf(cluster: Cluster, node: string, path: string): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const { bytes } of cluster.stream('machine.MachineService/Read', { path }, { node, timeout })) chunks.push(bytes)
  return Buffer.concat(chunks).toString('utf8')
}

/** Throws unless a service of a machine runs and is healthy. */
export async function checkHealthy(cluster: Cluster, node: string, id: string): Promise<void> {
  const lists = await cluster.ask('machine.MachineService/ServiceList', {}, { node, timeout })
  const service = lists.flatMap(({ services }) => services).find((one) => one.id === id)
  if (service?.state !== 'Running' || !service.health?.healthy)
    throw new Error(
      `${node}: ${id} is ${service?.state ?? 'not there'}${service?.health?.lastMessage ? `: ${service.health.lastMessage}` : ''}`,
    )
}

/** Restarts the kubelet of a machine; pods go on running. */
export async function restartKubelet(cluster: Cluster, node: string): Promise<void> {
  await cluster.ask('machine.MachineService/ServiceRestart', { id: 'kubelet' }, { node, timeout: 30_000 })
}

/** Calls a machine through one endpoint; both connections are new ones. */
export async function checkCallable(open: () => Cluster, node: string): Promise<void> {
  const cluster = open()
  try {
    await cluster.ask('machine.MachineService/Version', {}, { node, newConnection: true, timeout })
  } finally {
    await cluster.close()
  }
}

/** An error of several, each with what it concerns. */
export function together(errors: readonly { readonly what: string; readonly error: unknown }[]): Error {
  return new Error(errors.map(({ what, error }) => `${what}: ${describe(error).trim()}`).join('; '))
}
