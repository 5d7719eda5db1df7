/** One machine of a cluster, named in each call: its configuration, its resources, its services. */
import type { ConfigContainer } from '../../../os/config/container.ts'
import { parseConfig } from '../../../os/config/parse.ts'
import { Cluster } from '../cluster.ts'
import type { Io } from '../io.ts'
import { applyTo } from '../machine-config/applying.ts'
import { machineConfig } from '../machine-config/machine-config.ts'
import { specOf } from '../resource/definition.ts'

const timeout = 10_000

/** Runs `act` with the same endpoints without the nodes of the client configuration: the command names the machine in each call. */
export async function atEndpoints<T>(io: Io, cluster: Cluster, act: (own: Cluster) => Promise<T>): Promise<T> {
  const own = new Cluster(io, { ...(await cluster.target()), nodes: [] })
  try {
    return await act(own)
  } finally {
    await own.close()
  }
}

/** The configuration that a machine has. */
export async function readConfig(cluster: Cluster, node: string): Promise<ConfigContainer> {
  return parseConfig(await machineConfig(cluster, node))
}

/** Applies a configuration without a reboot, and confirms it over a new connection where the machine requires that. */
export async function applyConfig(io: Io, cluster: Cluster, node: string, config: ConfigContainer): Promise<void> {
  // What the machine answers is about every change alike: the command reports its own progress.
  const silenced: Io = { ...io, signal: io.signal, pause: (time) => io.pause(time), stderr: { ...io.stderr, write: () => {} } }
  await applyTo(silenced, cluster, config.bytes, { mode: 'no-reboot', timeout: 60_000 }, node)
}

/** The spec of a machine's resource. */
export async function resourceOf<T>(cluster: Cluster, node: string, namespace: string, type: string, id: string): Promise<T> {
  const { resource } = await cluster.unary('cosi.resource.State/Get', { namespace, type, id }, { node, timeout })
  if (!resource) throw new Error(`${node}: there is no ${type}/${id}`)
  return specOf(resource) as T
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

/** The name of a machine's Node. */
export async function nameOf(cluster: Cluster, node: string): Promise<string> {
  const type = 'Nodenames.kubernetes.talos.dev'
  return (await resourceOf<{ nodename: string }>(cluster, node, 'k8s', type, 'nodename')).nodename
}
