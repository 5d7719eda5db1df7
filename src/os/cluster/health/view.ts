/** What the health checks may ask: each machine over its API, and Kubernetes. Whoever runs them says how. */

import type { KubeClient } from '../../../kube/client.ts'
import type { machine } from '../../../rpc/messages.ts'

/** One machine of the cluster, asked by its address. */
export interface MachineView {
  services(): Promise<readonly machine.ServiceInfo[]>
  etcdMembers(): Promise<readonly machine.EtcdMember[]>
  /** Bytes. */
  memory(): Promise<number>
  mounts(): Promise<readonly machine.MountStat[]>
  /** The specs of a type's resources by id. */
  resources(namespace: string, type: string): Promise<ReadonlyMap<string, unknown>>
}

/** The cluster as it is said to be. */
export interface ClusterView {
  /** Addresses of the machines. */
  readonly controlPlanes: readonly string[]
  readonly workers: readonly string[]
  machine(address: string): MachineView
  /** A client with the rights of an administrator; may throw as long as there is none. */
  kubernetes(): Promise<KubeClient>
}

/** The addresses of all machines. */
export function everyone({ controlPlanes, workers }: ClusterView): string[] {
  return [...controlPlanes, ...workers]
}
