/** Makes a cluster's network and containers in the engine, each one only when it is not there, and takes them away again. */

import * as v from 'valibot'
import type { ClusterRecord, NodeRecord } from '../../../node-supervisor/layout.ts'
import { UsageError } from '../../failure.ts'
import { discoveryBody, discoveryName, label, labelsOf, networkBody, nodeBody } from './bodies.ts'
import { type Engine, EngineError } from './client.ts'
import { Container, Created, Info, Listed, Network } from './replies.ts'

/** Milliseconds until a container that does not stop is killed: init gives its services 60 s. */
const stopGrace = 75_000
const removeDeadline = 120_000
/** Bytes of a node's console that are fetched. */
const logLimit = 4 << 20
/** Restarts after which a node will not come up by waiting longer. */
const manyRestarts = 3

/** Refuses an engine that cannot run nodes. */
export async function checkEngine(engine: Engine): Promise<void> {
  const { OSType, SecurityOptions } = await engine.request('GET', '/info', Info)
  if (OSType && OSType !== 'linux') throw new UsageError(`the engine at "${engine.socket}" runs ${OSType} containers: switch it to Linux`)
  if (SecurityOptions?.some((option) => option.split(',').includes('name=rootless')))
    throw new UsageError(
      `the engine at "${engine.socket}" is rootless, and nodes mount file systems and set kernel parameters: use one that runs as root, such as DOCKER_HOST=unix:///var/run/docker.sock`,
    )
}

const filters = (cluster: string) => JSON.stringify({ label: Object.entries(labelsOf(cluster)).map(([name, value]) => `${name}=${value}`) })

/** The containers of a cluster, also those that do not run. */
export async function containersOf(engine: Engine, cluster: string): Promise<Listed[]> {
  const query = { all: 'true', filters: filters(cluster) }
  const found = await engine.request('GET', '/containers/json', v.array(Listed), { query })
  // An engine that does not know a filter answers everything.
  return found.filter(({ Labels }) => isOwned(Labels, cluster))
}

const isOwned = (labels: Record<string, string> | null | undefined, cluster: string): boolean =>
  labels?.[label.owned] === 'true' && labels[label.cluster] === cluster

/** The name of a container: engines put a slash before it. */
export const nameOf = ({ Names }: Listed): string => (Names?.[0] ?? '').replace(/^\//, '')

/** All networks of the engine. */
export const networks = (engine: Engine): Promise<Network[]> => engine.request('GET', '/networks', v.array(Network))

/** The IPv4 subnets of a network. */
export const subnetsOf = ({ IPAM }: Network): string[] =>
  (IPAM?.Config ?? []).flatMap(({ Subnet }) => (Subnet && !Subnet.includes(':') ? [Subnet] : []))

/** Whether the cluster's network is there; refuses one of the same name that is another's, or has other addresses. */
export function checkNetwork(found: readonly Network[], cluster: string, cidr: string): boolean {
  const same = found.find(({ Name }) => Name === cluster)
  if (!same) return false
  const subnets = subnetsOf(same)
  if (!isOwned(same.Labels, cluster))
    throw new UsageError(`the container engine has a network "${cluster}" of somebody else: choose another name with --name`)
  if (subnets.length !== 1 || subnets[0] !== cidr)
    throw new UsageError(
      `the container engine has network "${cluster}" with ${subnets.join(', ') || 'no subnet'}, not ${cidr}: name that with --subnet, or take it away with "talosctl cluster destroy --provisioner docker --force --name ${cluster}"`,
    )
  return true
}

/** Makes the network. */
export async function provideNetwork(engine: Engine, cluster: ClusterRecord): Promise<void> {
  if (checkNetwork(await networks(engine), cluster.name, cluster.network.cidr)) return
  await engine.request('POST', '/networks/create', Created, { body: networkBody(cluster) })
}

/** Makes and starts the discovery server. */
export async function provideDiscovery(engine: Engine, cluster: ClusterRecord): Promise<void> {
  const { discovery } = cluster
  if (discovery) await provideContainer(engine, cluster.name, discoveryName(cluster.name), () => discoveryBody(cluster, discovery.port))
}

/** Makes and starts a node; true when it was not there. `config` is its machine configuration. */
export async function provideNode(
  engine: Engine,
  cluster: ClusterRecord,
  node: NodeRecord,
  config: () => Promise<string | undefined>,
): Promise<boolean> {
  return provideContainer(engine, cluster.name, node.name, async () => nodeBody(cluster, node, await config()))
}

async function provideContainer(engine: Engine, cluster: string, name: string, body: () => object | Promise<object>): Promise<boolean> {
  const present = (await containersOf(engine, cluster)).find((one) => nameOf(one) === name)
  if (present?.State === 'running') return false
  const Id = present?.Id ?? (await engine.request('POST', '/containers/create', Created, { query: { name }, body: await body() })).Id
  await engine.perform('POST', `/containers/${Id}/start`)
  return present === undefined
}

/** Why a node will not come up by waiting longer, with the end of its console. */
export async function nodeTrouble(engine: Engine, node: string): Promise<string | undefined> {
  const container = await inspect(engine, node)
  if (!container) return `there is no container "${node}" any more`
  const { State, RestartCount } = container
  const ended = State.Status === 'exited' || State.Status === 'dead'
  if (!ended && (RestartCount ?? 0) < manyRestarts) return undefined
  const last = (await consoleOf(engine, container.Id, 20)).trimEnd().split('\n').at(-1)
  return `container "${node}" ${ended ? `ended with status ${State.ExitCode}` : `was started ${RestartCount} times again`}${State.Error ? `, ${State.Error}` : ''}; its last line: ${last || 'none'}`
}

/** Whether a node's container is not there, or has ended. */
export async function hasEnded(engine: Engine, node: string): Promise<boolean> {
  const status = (await inspect(engine, node))?.State.Status
  return status === undefined || status === 'exited' || status === 'dead' || status === 'created'
}

async function inspect(engine: Engine, name: string): Promise<Container | undefined> {
  return absent(engine.request('GET', `/containers/${encodeURIComponent(name)}/json`, Container))
}

/** The last lines of a node's console. */
export async function consoleOf(engine: Engine, id: string, lines: number): Promise<string> {
  const query = { stdout: 'true', stderr: 'true', tail: String(lines) }
  return plainLog(await engine.bytes(`/containers/${encodeURIComponent(id)}/logs`, logLimit, { query }))
}

/** The bytes of a log: each piece has a header of eight bytes, the stream first and its length last. */
export function plainLog(bytes: Buffer): string {
  const pieces: Buffer[] = []
  for (let at = 0; at + 8 <= bytes.length; ) {
    const length = bytes.readUInt32BE(at + 4)
    pieces.push(bytes.subarray(at + 8, at + 8 + length))
    at += 8 + length
  }
  return Buffer.concat(pieces).toString()
}

/** Starts what a cluster has; throws with the names of nodes that are not there. */
export async function startContainers(engine: Engine, cluster: ClusterRecord): Promise<void> {
  const present = await containersOf(engine, cluster.name)
  const names = new Set(present.map(nameOf))
  const missing = cluster.nodes.filter(({ name }) => !names.has(name)).map(({ name }) => name)
  if (missing.length > 0)
    throw new Error(
      `the container engine has no ${missing.join(', ')}: make what is missing with "talosctl cluster create docker --name ${cluster.name}"`,
    )
  const stopped = present.filter(({ State }) => State !== 'running')
  await Promise.all(stopped.map(({ Id }) => engine.perform('POST', `/containers/${Id}/start`)))
}

/** Shuts down what runs of a cluster. */
export async function stopContainers(engine: Engine, cluster: string): Promise<void> {
  const running = (await containersOf(engine, cluster)).filter(({ State }) => State === 'running')
  const query = { t: String(stopGrace / 1000) }
  await Promise.all(running.map(({ Id }) => engine.perform('POST', `/containers/${Id}/stop`, { query, deadline: stopGrace + 60_000 })))
}

/** Takes a container away with its volumes; one that is not there is no error. */
export async function removeContainer(engine: Engine, id: string): Promise<void> {
  const query = { force: 'true', v: 'true' }
  await absent(engine.perform('DELETE', `/containers/${encodeURIComponent(id)}`, { query, deadline: removeDeadline }))
}

/** Takes everything of a cluster away, found by its labels; returns how many containers there were. */
export async function removeCluster(engine: Engine, cluster: string): Promise<number> {
  const present = await containersOf(engine, cluster)
  await Promise.all(present.map(({ Id }) => removeContainer(engine, Id)))
  const own = (await networks(engine)).filter(({ Name, Labels }) => Name === cluster && isOwned(Labels, cluster))
  for (const { Id } of own) await absent(engine.perform('DELETE', `/networks/${encodeURIComponent(Id)}`))
  return present.length
}

async function absent<T>(act: Promise<T>): Promise<T | undefined> {
  try {
    return await act
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return undefined
    throw error
  }
}
