/** Serves each virtual machine its configuration; the kernel's command line contains the URL. */

import { existsSync } from 'node:fs'
import { formatHostPort } from '../../../wire/host-port.ts'
import type { ClusterRecord, MachinesRecord, NodeRecord } from '../layout.ts'
import { nodeDirectory, nodePaths } from '../layout.ts'

/** Where a node finds its configuration. */
export function configUrl({ network }: ClusterRecord, machines: MachinesRecord, node: NodeRecord): string {
  return `http://${formatHostPort(network.gateway, machines.configPort ?? 0)}${pathOf(node)}`
}

const pathOf = (node: NodeRecord) => `/configuration/${node.uuid}`

/** The node that a request comes from: each receives only its own configuration, which contains secrets. */
export function requestingNode(cluster: ClusterRecord, path: string, address: string | undefined): NodeRecord | undefined {
  return cluster.nodes.find((node) => node.uuid !== undefined && pathOf(node) === path && node.ip === address)
}

/** Serves until it is closed; a configuration that does not exist yet is a 404, and machines retry. */
export function serveConfigs(directory: string, current: () => ClusterRecord): { close(): void } | undefined {
  const { network, machines } = current()
  if (!machines?.configPort) return undefined
  const server = Bun.serve({
    hostname: network.gateway,
    port: machines.configPort,
    fetch(request, server) {
      const node = requestingNode(current(), new URL(request.url).pathname, server.requestIP(request)?.address)
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
