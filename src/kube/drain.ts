/** Drains a node: cordons it and evicts its pods, within disruption budgets. */

import { setTimeout as sleep } from 'node:timers/promises'
import { core, type KubeClient, pathOf } from './client.ts'
import { isNotFound, KubeError } from './errors.ts'
import type { KubeObject } from './object.ts'

/** Options of a drain. */
export interface DrainOptions {
  /** Milliseconds until the drain fails. */
  readonly timeout: number
  readonly interval?: number
  readonly signal?: AbortSignal
  /** Reports the pods that are left. */
  report?(state: string): void
}

/** Cordons or uncordons a node. */
export async function setSchedulable(client: KubeClient, node: string, schedulable: boolean): Promise<void> {
  const body = { spec: { unschedulable: schedulable ? null : true } }
  await client.patch(core.node, node, undefined, { type: 'application/merge-patch+json', body })
}

/** Cordons a node, evicts its pods and waits until they are gone. Throws with the remaining pods on timeout. */
export async function drain(client: KubeClient, node: string, options: DrainOptions): Promise<void> {
  const { timeout, interval = 1000, signal, report = () => {} } = options
  const end = performance.now() + timeout
  await setSchedulable(client, node, false)
  const evicted = new Set<string>()
  for (;;) {
    const { items } = await client.list(core.pod, { fieldSelector: `spec.nodeName=${node}` }, { signal })
    const left = items.filter(mayLeave)
    if (left.length === 0) return
    report(`${left.length} pod${left.length === 1 ? '' : 's'} left: ${left.map(nameOf).join(', ')}`)
    for (const pod of left) if (!evicted.has(uidOf(pod)) && (await evict(client, pod, signal))) evicted.add(uidOf(pod))
    if (performance.now() + interval > end) {
      throw new KubeError(
        0,
        'Timeout',
        `drain node "${node}": ${left.map(nameOf).join(', ')} did not leave within ${Math.round(timeout / 1000)} s`,
      )
    }
    await sleep(interval, undefined, { signal })
  }
}

/** Whether a drain evicts a pod: not pods of a DaemonSet, not mirror pods, not pods that have completed. */
function mayLeave({ metadata, status }: KubeObject): boolean {
  const { phase } = (status ?? {}) as { phase?: string }
  if (phase === 'Succeeded' || phase === 'Failed') return false
  if (metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined) return false
  return !metadata.ownerReferences?.some(({ kind, controller }) => kind === 'DaemonSet' && controller !== false)
}

/** Evicts a pod; returns false when a disruption budget does not allow it yet. */
async function evict(client: KubeClient, { metadata }: KubeObject, signal?: AbortSignal): Promise<boolean> {
  const { name, namespace } = metadata
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } }
  try {
    await client.request('POST', `${pathOf(core.pod, namespace, name)}/eviction`, { body: JSON.stringify(eviction), signal })
    return true
  } catch (error) {
    if (isNotFound(error)) return true
    if (error instanceof KubeError && error.status === 429) return false
    throw error
  }
}

function nameOf({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name}`
}

function uidOf(pod: KubeObject): string {
  return pod.metadata.uid ?? nameOf(pod)
}
