/** The status of a pod as its kubelet reports it (PodStatus of core/v1): the fields that are read here. */
import type { KubeObject } from './object.ts'

/** A condition of a pod or a node. */
export interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
}

/** How a container ended. */
export interface Terminated {
  readonly exitCode?: number
  readonly reason?: string
  readonly message?: string
}

/** One container. */
export interface ContainerStatus {
  readonly name?: string
  readonly ready?: boolean
  readonly restartCount?: number
  readonly state?: { readonly running?: object; readonly waiting?: { reason?: string; message?: string }; readonly terminated?: Terminated }
  readonly lastState?: { readonly terminated?: Terminated }
}

/** A pod. */
export interface PodStatus {
  readonly phase?: string
  readonly reason?: string
  readonly message?: string
  readonly conditions?: readonly Condition[]
  readonly containerStatuses?: readonly ContainerStatus[]
  readonly initContainerStatuses?: readonly ContainerStatus[]
}

/** The status of a pod; empty before the kubelet reported one. */
export const podStatus = ({ status }: KubeObject): PodStatus => (status ?? {}) as PodStatus

/**
 * Whether all containers of a pod have ended and none starts again. Its owner has put another in its place, but the object stays: after a graceful
 * shutdown of its node until the garbage collector's limit is reached.
 */
export const hasEnded = (pod: KubeObject): boolean => ['Succeeded', 'Failed'].includes(podStatus(pod).phase ?? '')

/** The conditions in the status of a pod or a node; none when it has no status. */
export function conditionsOf(status: unknown): readonly Condition[] {
  return (status as { conditions?: readonly Condition[] } | undefined)?.conditions ?? []
}

/** Whether the condition Ready of a pod or a node holds. */
export const isReady = (status: unknown): boolean =>
  conditionsOf(status).some(({ type, status: value }) => type === 'Ready' && value === 'True')
