/** The bodies with which the engine makes a cluster's network and containers; tests compare them with the tables of the field. */

import type { ClusterRecord, NodeRecord } from '../../../node-supervisor/layout.ts'
import { machineApiPort } from '../node-api.ts'
import { loopback } from './reach.ts'

/** Labels that find everything of a cluster again. */
export const label = { owned: 'talos.owned', cluster: 'talos.cluster.name', type: 'talos.type' } as const

/** Where a control plane serves Kubernetes. */
export const kubernetesPort = 6443

const memoryFolders = ['/run', '/system', '/tmp']
/** In the order in which the field mounts them. */
const volumes = ['/var', '/system/state', '/etc/cni', '/etc/kubernetes', '/usr/libexec/kubernetes', '/opt']
const discoveryMemory = 256 << 20

/** The labels of a cluster's things. */
export const labelsOf = (cluster: string): Record<string, string> => ({ [label.owned]: 'true', [label.cluster]: cluster })

/** The container of a cluster's discovery server. */
export const discoveryName = (cluster: string): string => `${cluster}-discovery`

/** The network: one IPv4 subnet, with the first address as its gateway. */
export function networkBody({ name, network }: ClusterRecord) {
  return {
    Name: name,
    Driver: 'bridge',
    CheckDuplicate: true,
    Labels: labelsOf(name),
    IPAM: { Driver: 'default', Config: [{ Subnet: network.cidr, Gateway: network.gateway }] },
    Options: { 'com.docker.network.driver.mtu': String(network.mtu) },
  }
}

/** A node; `config` is its machine configuration, without which it waits in maintenance. */
export function nodeBody(cluster: ClusterRecord, node: NodeRecord, config: string | undefined) {
  const published = publishedPorts(cluster, node)
  return {
    Image: cluster.image,
    Hostname: node.name,
    // Podman takes /sbin/init for systemd, which stops at another signal.
    StopSignal: 'SIGTERM',
    Env: [
      'PLATFORM=container',
      `TALOSSKU=${Math.ceil(node.cpus / 1000)}CPU-${Math.round(node.memory / 1024 ** 2)}RAM`,
      ...(config === undefined ? [] : [`USERDATA=${Buffer.from(config).toString('base64')}`]),
    ],
    Labels: { ...labelsOf(cluster.name), [label.type]: node.role },
    ExposedPorts: Object.fromEntries(published.map(({ port }) => [port, {}])),
    HostConfig: {
      Privileged: true,
      SecurityOpt: ['seccomp:unconfined'],
      ReadonlyRootfs: true,
      NanoCpus: node.cpus * 1_000_000,
      Memory: node.memory,
      // A node that restarts ends with another status than one that was shut down.
      RestartPolicy: { Name: 'on-failure' },
      ...(!cluster.engine?.disableIPv6 && { Sysctls: { 'net.ipv6.conf.all.disable_ipv6': '0' } }),
      Mounts: [
        ...memoryFolders.map((Target) => ({ Type: 'tmpfs', Target })),
        ...volumes.map((Target) => ({ Type: 'volume', Target })),
        ...(cluster.engine?.mounts ?? []),
      ],
      PortBindings: bindings(published),
      NetworkMode: cluster.name,
    },
    NetworkingConfig: addressIn(cluster.name, node.ip),
  }
}

/** The discovery server, through which members find each other: the same binary, without rights. */
export function discoveryBody(cluster: ClusterRecord, port: number) {
  return {
    Image: cluster.image,
    Hostname: discoveryName(cluster.name),
    Entrypoint: ['/usr/bin/ichor'],
    Cmd: ['discovery', '--listen', `0.0.0.0:${port}`],
    Labels: labelsOf(cluster.name),
    User: '65534:65534',
    HostConfig: {
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      Memory: discoveryMemory,
      RestartPolicy: { Name: 'on-failure' },
      NetworkMode: cluster.name,
    },
    NetworkingConfig: addressIn(cluster.name, cluster.engine?.discoveryAddress ?? ''),
  }
}

interface Published {
  /** As in `6443/tcp`. */
  port: string
  address: string
  hostPort: number
}

/** Ports of the host that lead to a node: the two APIs of the first control plane, and those that were exposed. */
function publishedPorts({ nodes, machineApi, kubernetes, hostAddress }: ClusterRecord, node: NodeRecord): Published[] {
  const first = nodes.find(({ role }) => role === 'controlplane')
  const own = [
    { port: `${machineApiPort}/tcp`, address: loopback, hostPort: machineApi.hostPort },
    { port: `${kubernetesPort}/tcp`, address: loopback, hostPort: kubernetes.hostPort },
  ]
  const exposed = node.ports.map(({ hostPort, nodePort, protocol, address = hostAddress }) => ({
    port: `${nodePort}/${protocol}`,
    address,
    hostPort,
  }))
  return [...(node.name === first?.name ? own : []), ...exposed]
}

/** A port of a node may be published several times. */
function bindings(published: readonly Published[]): Record<string, { HostIp: string; HostPort: string }[]> {
  const byPort = Map.groupBy(published, ({ port }) => port)
  return Object.fromEntries(
    [...byPort].map(([port, all]) => [port, all.map(({ address, hostPort }) => ({ HostIp: address, HostPort: String(hostPort) }))]),
  )
}

const addressIn = (network: string, address: string) => ({
  EndpointsConfig: { [network]: { IPAMConfig: { IPv4Address: address } } },
})
