/** Where live completion gets its values. Every question has a short deadline: a shell waits for it. */

import type { Cluster } from '../cluster.ts'
import { type ContainerOptions, containerScope } from '../container-scope.ts'
import { isDirectory } from '../output/file-mode.ts'
import { definitions, resolveType } from '../resource/definition.ts'
import type { Suggest } from './live-argument.ts'

const timeout = 1500

/** Ids of services. */
export const services: Suggest = async (cluster) => {
  const messages = await cluster.ask('machine.MachineService/ServiceList', {}, { timeout })
  return messages.flatMap((message) => message.services.map(({ id }) => id))
}

/** Ids of containers. */
export const containers: Suggest = async (cluster, _, flags) => {
  const messages = await cluster.ask('machine.MachineService/Containers', containerScope(flags as ContainerOptions), { timeout })
  return messages.flatMap((message) => message.containers.map(({ id }) => id))
}

/** Names under which a log is found: services, or containers with --kubernetes. */
export const logs: Suggest = async (cluster, before, flags, word) => {
  if (flags.kubernetes) return containers(cluster, before, flags, word)
  const messages = await cluster.ask('machine.MachineService/LogsContainers', {}, { timeout })
  return messages.flatMap(({ ids }) => ids)
}

/** Types of resources, by the shortest of their plural names. */
export const resourceTypes: Suggest = async (cluster) => {
  const known = await definitions(cluster, await firstNode(cluster))
  return known.flatMap(({ id }) => [id.split('.')[0] ?? id])
}

/** Ids of the resources of the type in front. */
export const resourceIds: Suggest = async (cluster, [type = ''], flags) => {
  const node = await firstNode(cluster)
  const definition = resolveType(await definitions(cluster, node), type)
  const namespace = typeof flags.namespace === 'string' ? flags.namespace : definition.defaultNamespace
  const ids: string[] = []
  for await (const { resource } of cluster.stream('cosi.resource.State/List', { namespace, type: definition.type }, { node, timeout })) {
    if (resource?.metadata) ids.push(resource.metadata.id)
  }
  return ids
}

/** Paths on the node that begin like the word. */
export const paths: Suggest = async (cluster, _, __, word) => {
  const folder = word.slice(0, word.lastIndexOf('/') + 1) || '/'
  const found: string[] = []
  for await (const file of cluster.stream('machine.MachineService/List', { root: folder, recursionDepth: 1 }, { timeout })) {
    if (file.relativeName === '.' || file.error) continue
    found.push(`${folder}${file.relativeName}${isDirectory(file.mode) ? '/' : ''}`)
  }
  return found
}

/** Nodes: those of the context and the members that the cluster knows. */
export async function nodes(cluster: Cluster): Promise<string[]> {
  const { nodes: chosen, endpoints } = await cluster.target()
  const known = new Set([...chosen, ...endpoints])
  const request = { namespace: 'cluster', type: 'Members.cluster.talos.dev' }
  try {
    for await (const { resource } of cluster.stream('cosi.resource.State/List', request, { node: chosen[0], timeout })) {
      if (resource?.metadata) known.add(resource.metadata.id)
    }
  } catch {
    // those of the context are better than none
  }
  return [...known]
}

async function firstNode(cluster: Cluster): Promise<string | undefined> {
  return (await cluster.nodes())[0]
}
