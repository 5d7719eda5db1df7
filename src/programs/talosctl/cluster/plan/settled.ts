import { isIPv6 } from '../../../../wire/prefix.ts'
import { type ClusterRecord, type NodeRecord, networksOf } from '../../../node-supervisor/layout.ts'
import { UsageError } from '../../failure.ts'
import { formatNetworks } from '../host/cidr.ts'
import type { ExposedPort } from '../host/exposed-ports.ts'
import type { ClusterRequest, RoleRequest } from './plan.ts'

/** Which of the settings that are fixed at creation were requested, rather than left to their defaults. */
export interface RequestedSettings {
  cidr: boolean
  /** Which address families nodes have. */
  families: boolean
  mtu: boolean
  kubernetesVersion: boolean
  exposedPorts: boolean
  controlplanes: { cpus: boolean; memory: boolean }
  workers: { cpus: boolean; memory: boolean }
}

/** Rejects requested settings that an existing cluster can no longer change, instead of ignoring them. */
export function checkSettled(
  record: ClusterRecord,
  request: ClusterRequest,
  requested: RequestedSettings,
  added: readonly NodeRecord[],
): void {
  const differs = (wanted: boolean, flag: string, there: string, now: string) => {
    if (wanted && there !== now)
      throw new UsageError(
        `${flag}: cluster "${record.name}" was created with ${there || 'none'}: leave the flag out, or destroy the cluster and create it again`,
      )
  }
  differs(requested.cidr, '--cidr', networksOf(record).join(','), formatNetworks(request.networks))
  const families = (networks: readonly string[]) => networks.map((cidr) => (isIPv6(cidr) ? 'IPv6' : 'IPv4')).join(' and ')
  differs(requested.families, '--ipv6', families(networksOf(record)), families(formatNetworks(request.networks).split(',')))
  differs(requested.mtu, '--mtu', String(record.network.mtu), String(request.mtu))
  differs(requested.kubernetesVersion, '--kubernetes-version', record.kubernetes.version, request.kubernetesVersion)
  const ports = (list: readonly ExposedPort[]) =>
    list.map(({ address, hostPort, nodePort, protocol }) => `${address ? `${address}:` : ''}${hostPort}:${nodePort}/${protocol}`).join(',')
  differs(requested.exposedPorts, '--exposed-ports', ports(record.nodes.flatMap((node) => node.ports)), ports(request.exposedPorts))
  for (const [role, suffix] of [
    ['controlplane', 'controlplanes'],
    ['worker', 'workers'],
  ] as const) {
    // Added nodes get the requested size; existing ones keep theirs.
    if (added.some((node) => node.role === role)) continue
    const size: RoleRequest = request[suffix]
    for (const node of record.nodes.filter((node) => node.role === role)) {
      differs(requested[suffix].cpus, `--cpus-${suffix}`, String(node.cpus / 1000), String(size.cpus / 1000))
      differs(requested[suffix].memory, `--memory-${suffix}`, gibibytes(node.memory), gibibytes(size.memory))
    }
  }
}

const gibibytes = (bytes: number) => `${(bytes / 1024 ** 3).toFixed(2)}GiB`
