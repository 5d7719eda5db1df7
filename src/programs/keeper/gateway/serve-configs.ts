/** Hands each virtual machine its configuration, for those that are told by their kernel's command line where to ask. */

import { existsSync } from 'node:fs'
import type { ClusterRecord, MachinesRecord, NodeRecord } from '../layout.ts'
import { nodeDirectory, nodePaths } from '../layout.ts'

/** Where a node finds its configuration. */
export function configUrl({ network }: ClusterRecord, machines: MachinesRecord, node: NodeRecord): string {
  return `http://${network.gateway}:${machines.configPort ?? 0}${pathOf(node)}`
}

const pathOf = (node: NodeRecord) => `/configuration/${node.uuid}`

/** The node a request is answered for: each is told its own configuration alone, for there are secrets in it. */
export function nodeAsking(cluster: ClusterRecord, path: string, address: string | undefined): NodeRecord | undefined {
  return cluster.nodes.find((node) => node.uuid !== undefined && pathOf(node) === path && node.ip === address)
}

/** Serves until it is closed; a configuration that is not made yet is not found, and machines ask again. */
export function serveConfigs(directory: string, current: () => ClusterRecord): { close(): void } | undefined {
  const { network, machines } = current()
  if (!machines?.configPort) return undefined
  const server = Bun.serve({
    hostname: network.gateway,
    port: machines.configPort,
    fetch(request, server) {
      const node = nodeAsking(current(), new URL(request.url).pathname, server.requestIP(request)?.address)
      const file = node && nodePaths(nodeDirectory(directory, node.name)).config
      if (request.method !== 'GET' || !file || !existsSync(file)) return new Response('not found\n', { status: 404 })
      return new Response(Bun.file(file), { headers: { 'content-type': 'application/yaml' } })
    },
  })
  return {
    close() {
      server.stop(true).catch(() => {}) // its process ends next
    },
  }
}
