/** Whether the pods of cluster DNS should be spread: the scheduler places them once, often before the second node has joined. */
import type { KubeObject } from '../../../kube/object.ts'
import { hasEnded, isReady as isPodReady } from '../../../kube/pod.ts'

interface Condition {
  readonly type: string
  readonly status: string
  readonly lastTransitionTime?: string
}

interface Status {
  readonly phase?: string
  readonly conditions?: readonly Condition[]
}

interface Spec {
  readonly nodeName?: string
  readonly unschedulable?: boolean
  readonly taints?: readonly { readonly key: string; readonly effect: string }[]
}

/** Milliseconds that pods and nodes must have been ready: a cluster that is starting is left alone. */
const settleTime = 30_000

/** The taint that the pods of cluster DNS tolerate. */
const tolerated = 'node-role.kubernetes.io/control-plane'

/** A pod to evict, so that it starts on one of the nodes. */
export interface Move {
  readonly pod: KubeObject
  /** Nodes that could take it, sorted by name. */
  readonly to: readonly string[]
}

/** The newest pod of DNS, when all are ready on one node and another node could take one. */
export function crowdedDns(nodes: readonly KubeObject[], all: readonly KubeObject[], now: Date): Move | undefined {
  const pods = all.filter((pod) => !hasEnded(pod))
  const placed = new Set(pods.map((pod) => specOf(pod).nodeName))
  if (pods.length < 2 || placed.size !== 1 || !pods.every((pod) => isReady(pod, now) && !isGoing(pod))) return undefined
  const to = nodes.filter((node) => !placed.has(node.metadata.name) && isReady(node, now) && takesDns(specOf(node)))
  if (to.length === 0) return undefined
  const [pod] = pods.toSorted((a, b) => created(b) - created(a))
  return pod && { pod, to: to.flatMap(({ metadata }) => metadata.name ?? []).sort() }
}

/** Whether a pod of a scheduler places others: without one, an evicted pod would have no node. */
export const isPlacing = (pod: KubeObject): boolean => isPodReady(pod.status) && !isGoing(pod)

function takesDns({ unschedulable = false, taints = [] }: Spec): boolean {
  return !unschedulable && taints.every(({ key, effect }) => effect === 'PreferNoSchedule' || key === tolerated)
}

function isReady({ status }: KubeObject, now: Date): boolean {
  const ready = (status as Status | undefined)?.conditions?.find(({ type }) => type === 'Ready')
  return ready?.status === 'True' && now.getTime() - Date.parse(ready.lastTransitionTime ?? '') >= settleTime
}

const specOf = ({ spec }: KubeObject): Spec => (spec ?? {}) as Spec

const isGoing = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined

const created = ({ metadata }: KubeObject): number => Date.parse(metadata.creationTimestamp ?? '') || 0
