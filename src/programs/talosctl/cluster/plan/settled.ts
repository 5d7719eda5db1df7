import type { ClusterRecord, NodeRecord } from '../../../node-supervisor/layout.ts'
import { UsageError } from '../../failure.ts'
import { formatCidr } from '../host/cidr.ts'
import type { ClusterRequest, RoleRequest } from './plan.ts'

/** Which of the things that are settled when a cluster is created were asked for, rather than left to their defaults. */
export interface Asked {
  cidr: boolean
  mtu: boolean
  kubernetesVersion: boolean
  exposedPorts: boolean
  controlplanes: { cpus: boolean; memory: boolean }
  workers: { cpus: boolean; memory: boolean }
}

/** Refuses to pass over in silence what an existing cluster cannot be given any more. */
export function checkSettled(record: ClusterRecord, request: ClusterRequest, asked: Asked, added: readonly NodeRecord[]): void {
  const differs = (wanted: boolean, flag: string, there: string, now: string) => {
    if (wanted && there !== now)
      throw new UsageError(
        `${flag}: cluster "${record.name}" was created with ${there || 'none'}: leave the flag out, or destroy the cluster and create it again`,
      )
  }
  differs(asked.cidr, '--cidr', record.network.cidr, formatCidr(request.cidr))
  differs(asked.mtu, '--mtu', String(record.network.mtu), String(request.mtu))
  differs(asked.kubernetesVersion, '--kubernetes-version', record.kubernetes.version, request.kubernetesVersion)
  const ports = (list: readonly { hostPort: number; nodePort: number; protocol: string }[]) =>
    list.map(({ hostPort, nodePort, protocol }) => `${hostPort}:${nodePort}/${protocol}`).join(',')
  differs(asked.exposedPorts, '--exposed-ports', ports(record.nodes.flatMap((node) => node.ports)), ports(request.exposedPorts))
  for (const [role, suffix] of [
    ['controlplane', 'controlplanes'],
    ['worker', 'workers'],
  ] as const) {
    // Nodes that are added take what is asked for; those that are there keep what they have.
    if (added.some((node) => node.role === role)) continue
    const size: RoleRequest = request[suffix]
    for (const node of record.nodes.filter((node) => node.role === role)) {
      differs(asked[suffix].cpus, `--cpus-${suffix}`, String(node.cpus / 1000), String(size.cpus / 1000))
      differs(asked[suffix].memory, `--memory-${suffix}`, gibibytes(node.memory), gibibytes(size.memory))
    }
  }
}

const gibibytes = (bytes: number) => `${(bytes / 1024 ** 3).toFixed(2)}GiB`
