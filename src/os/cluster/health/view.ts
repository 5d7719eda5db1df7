/** The interface of the health checks to the cluster: each machine over its API, and Kubernetes. The caller implements it. */

import type { KubeClient } from '../../../kube/client.ts'
import type { machine } from '../../../rpc/messages.ts'

/** One machine of the cluster, by its address. */
export interface MachineView {
  services(): Promise<readonly machine.ServiceInfo[]>
  etcdMembers(): Promise<readonly machine.EtcdMember[]>
  /** Bytes. */
  memory(): Promise<number>
  mounts(): Promise<readonly machine.MountStat[]>
  /** The specs of a type's resources by id. */
  resources(namespace: string, type: string): Promise<ReadonlyMap<string, unknown>>
}

/** The members of the cluster, as configured or discovered. */
export interface ClusterView {
  /** Addresses of the machines. */
  readonly controlPlanes: readonly string[]
  readonly workers: readonly string[]
  machine(address: string): MachineView
  /** A client with an administrator's rights; may throw as long as there is none. */
  kubernetes(): Promise<KubeClient>
}

/** The addresses of all machines. */
export function everyone({ controlPlanes, workers }: ClusterView): string[] {
  return [...controlPlanes, ...workers]
}
