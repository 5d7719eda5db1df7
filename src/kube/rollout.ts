/** How far the pods of a Deployment, DaemonSet or StatefulSet are from their current template. */
import type { KubeObject } from './object.ts'
import { conditionsOf } from './pod.ts'

/** Why a workload is not rolled out yet; undefined when it is, and for every other kind. */
export function rolloutLag({ kind, metadata, spec, status }: KubeObject): string | undefined {
  if (!['Deployment', 'DaemonSet', 'StatefulSet'].includes(kind)) return undefined
  const { generation = 0 } = metadata as { generation?: number }
  const seen = (status ?? {}) as Record<string, number | undefined>
  const [wanted, updated, available] =
    kind === 'DaemonSet'
      ? [seen.desiredNumberScheduled ?? 0, seen.updatedNumberScheduled ?? 0, seen.numberAvailable ?? 0]
      : [(spec as { replicas?: number } | undefined)?.replicas ?? 1, seen.updatedReplicas ?? 0, seen.availableReplicas ?? 0]
  if ((seen.observedGeneration ?? 0) >= generation && updated >= wanted && available >= wanted) return undefined
  return `${kind} ${metadata.namespace}/${metadata.name}: ${Math.min(updated, available)} of ${wanted} pods are up to date`
}

/** Why the rollout of a Deployment has ended without success; undefined while it may succeed. */
export function rolloutFailure({ kind, metadata, status }: KubeObject): string | undefined {
  if (kind !== 'Deployment') return undefined
  const failed = conditionsOf(status).find(({ type, status }) => type === 'Progressing' && status === 'False')
  return failed && `${kind} ${metadata.namespace}/${metadata.name}: ${failed.message ?? failed.reason}`
}
