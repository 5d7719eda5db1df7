/** How the host reaches a cluster: at the addresses of its nodes, or, where an engine has them, at ports that it publishes. */

import { formatHostPort } from '../../../../wire/host-port.ts'
import type { ClusterRecord } from '../../../node-supervisor/layout.ts'

/** Where published ports of the two APIs listen. */
export const loopback = '127.0.0.1'

/** Where clients reach the machine API: the endpoints of the client configuration. */
export function machineEndpoints({ nodes, machineApi, engine }: Pick<ClusterRecord, 'nodes' | 'machineApi' | 'engine'>): string[] {
  if (engine) return [formatHostPort(loopback, machineApi.hostPort)]
  return nodes.filter(({ role }) => role === 'controlplane').map(({ ip }) => ip)
}

/** Where clients reach Kubernetes instead of at the endpoint of its kubeconfig. */
export function publishedKubernetes({ kubernetes, engine }: Pick<ClusterRecord, 'kubernetes' | 'engine'>): string | undefined {
  return engine && `https://${formatHostPort(loopback, kubernetes.hostPort)}`
}

/** A kubeconfig whose server is the published port, for clients on the host. */
export async function reachableKubeconfig(record: ClusterRecord, text: string): Promise<string> {
  const server = publishedKubernetes(record)
  if (server === undefined) return text
  const { formatKubeconfig, parseKubeconfig } = await import('../../../../kube/kubeconfig.ts')
  const config = parseKubeconfig(text)
  const clusters = new Map([...config.clusters].map(([name, cluster]) => [name, { ...cluster, server }]))
  return formatKubeconfig({ ...config, clusters })
}
