/** The cluster's own address on its bridge: forwards to any control plane that answers, and to the host's resolvers when they are loopback. */

import { serveAddresses } from './gateway/serve-addresses.ts'
import { serveConfigs } from './gateway/serve-configs.ts'
import { type ClusterRecord, readCluster } from './layout.ts'
import { type Forward, forward } from './port-forward.ts'

const apiServerPort = 6443
const machineApiPort = 50_000

/** Serves the gateway of a cluster until the signal aborts; `onChange` receives the function that reloads the record. */
export async function serveGateway(directory: string, signal: AbortSignal, onChange: (reload: () => void) => void): Promise<void> {
  let cluster = required(directory)
  onChange(() => {
    cluster = readCluster(directory) ?? cluster
  })
  const opened: { close(): void }[] = []
  try {
    for (const one of gatewayForwards(() => cluster)) opened.push(await forward(one))
    if (cluster.machines) {
      opened.push(serveAddresses(() => cluster))
      const configs = serveConfigs(directory, () => cluster)
      if (configs) opened.push(configs)
    }
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      signal.addEventListener('abort', () => resolve())
    })
  } finally {
    for (const each of opened) each.close()
  }
}

/** What the gateway forwards, with the control planes as they are at each connection. */
export function gatewayForwards(current: () => ClusterRecord): Forward[] {
  const { network, kubernetes, machineApi, hostAddress } = current()
  const controlPlanes = (port: number) => () =>
    current()
      .nodes.filter(({ role, leaving }) => role === 'controlplane' && !leaving)
      .map(({ ip }) => ({ address: ip, port }))
  const gateways = [network.gateway, ...(network.second ? [network.second.gateway] : [])]
  const resolvers = () => current().network.forwardDns.map((address) => ({ address, port: 53 }))
  return [
    ...gateways.map((gateway) => ({
      ...{ protocol: 'tcp' as const, hostAddress: gateway, hostPort: kubernetes.port },
      targets: controlPlanes(apiServerPort),
    })),
    { protocol: 'tcp', hostAddress, hostPort: kubernetes.hostPort, targets: controlPlanes(apiServerPort) },
    { protocol: 'tcp', hostAddress, hostPort: machineApi.hostPort, targets: controlPlanes(machineApiPort) },
    ...(network.forwardDns.length === 0
      ? []
      : (['udp', 'tcp'] as const).map((protocol) => ({ protocol, hostAddress: network.gateway, hostPort: 53, targets: resolvers }))),
  ]
}

function required(directory: string): ClusterRecord {
  const cluster = readCluster(directory)
  if (!cluster) throw new Error(`serve the gateway of "${directory}": there is no cluster`)
  return cluster
}
