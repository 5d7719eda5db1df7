/** Taking a node out of use: no new pods come, and those that are there are asked to leave, disruption budgets respected. */

import { setTimeout as sleep } from 'node:timers/promises'
import { core, type KubeClient, pathOf } from './client.ts'
import { isNotFound, KubeError } from './errors.ts'
import type { KubeObject } from './object.ts'

/** How a drain goes on. */
export interface DrainOptions {
  /** Milliseconds until the drain is given up. */
  readonly timeout: number
  readonly interval?: number
  readonly signal?: AbortSignal
  /** Says what is waited for. */
  tell?(state: string): void
}

/** Keeps new pods off a node, or lets them come again. */
export async function setSchedulable(client: KubeClient, node: string, schedulable: boolean): Promise<void> {
  const body = { spec: { unschedulable: schedulable ? null : true } }
  await client.patch(core.node, node, undefined, { type: 'application/merge-patch+json', body })
}

/** Cordons a node and evicts its pods, then waits until they are gone. Throws with the pods that are left when time is up. */
export async function drain(client: KubeClient, node: string, options: DrainOptions): Promise<void> {
  const { timeout, interval = 1000, signal, tell = () => {} } = options
  const end = performance.now() + timeout
  await setSchedulable(client, node, false)
  const asked = new Set<string>()
  for (;;) {
    const { items } = await client.list(core.pod, { fieldSelector: `spec.nodeName=${node}` }, { signal })
    const left = items.filter(mayLeave)
    if (left.length === 0) return
    tell(`${left.length} pod${left.length === 1 ? '' : 's'} left: ${left.map(nameOf).join(', ')}`)
    for (const pod of left) if (!asked.has(uidOf(pod)) && (await evict(client, pod, signal))) asked.add(uidOf(pod))
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

/** Whether a pod is evicted by a drain: not what a DaemonSet or the node itself keeps there, and not what has ended. */
function mayLeave({ metadata, status }: KubeObject): boolean {
  const { phase } = (status ?? {}) as { phase?: string }
  if (phase === 'Succeeded' || phase === 'Failed') return false
  if (metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined) return false
  return !metadata.ownerReferences?.some(({ kind, controller }) => kind === 'DaemonSet' && controller !== false)
}

/** Asks a pod to leave; false when a disruption budget does not let it go yet. */
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
