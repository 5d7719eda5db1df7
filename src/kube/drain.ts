/** Drains a node: cordons it and evicts its pods, within disruption budgets. */

import { pause } from '../timing/pause.ts'
import { core, type KubeClient, pathOf } from './client.ts'
import { isNotFound, KubeError } from './errors.ts'
import type { KubeObject } from './object.ts'
import { hasEnded } from './pod.ts'

/** Options of a drain. */
export interface DrainOptions {
  /** Milliseconds until the drain fails. */
  readonly timeout: number
  readonly interval?: number
  readonly signal?: AbortSignal
  /** Leave pods that nothing would start elsewhere. Default: evict them too. */
  readonly keepOwnerless?: boolean
  /** Annotations for a node that this drain cordons. */
  readonly annotations?: Readonly<Record<string, string>>
  /** Called with whether this drain cordoned the node, so that only who did lets pods come again. */
  cordoned?(byThis: boolean): void
  /** Reports the pods that are left. */
  report?(state: string): void
}

/** A pod that has not left, and why its eviction is refused, if it is. */
export interface Remaining {
  /** `namespace/name`. */
  readonly pod: string
  /** The API server's words, which name the disruption budget. */
  readonly refusal?: string | undefined
}

/** Pods did not leave in time. */
export class DrainTimeout extends Error {
  override readonly name = 'DrainTimeout'
  constructor(
    node: string,
    timeout: number,
    readonly remaining: readonly Remaining[],
  ) {
    super(`drain node "${node}": not done within ${Math.round(timeout / 1000)} s: ${remaining.map(describe).join('; ')}`)
  }
}

/** Cordons a node; returns false when it was cordoned already. */
export async function cordon(client: KubeClient, node: string, { annotations, signal }: Partial<DrainOptions> = {}): Promise<boolean> {
  const { spec } = await client.get(core.node, node, undefined, { signal })
  if ((spec as { unschedulable?: boolean } | undefined)?.unschedulable) return false
  const body = { ...(annotations && { metadata: { annotations } }), spec: { unschedulable: true } }
  await client.patch(core.node, node, undefined, { type: 'application/merge-patch+json', body }, { signal })
  return true
}

/** Lets pods come to a node again. */
export async function uncordon(client: KubeClient, node: string): Promise<void> {
  await client.patch(core.node, node, undefined, { type: 'application/merge-patch+json', body: { spec: { unschedulable: null } } })
}

/**
 * Cordons a node, evicts its pods and waits until they are gone. Throws DrainTimeout, or KubeError when an eviction is refused for
 * another reason than a budget; the node stays cordoned then.
 */
export async function drain(client: KubeClient, node: string, options: DrainOptions): Promise<void> {
  const { timeout, interval = 1000, signal, report = () => {} } = options
  const cordoned = await cordon(client, node, options)
  options.cordoned?.(cordoned)
  const end = performance.now() + timeout
  const evicted = new Set<string>()
  for (;;) {
    const { items } = await client.list(core.pod, { fieldSelector: `spec.nodeName=${node}` }, { signal })
    const left = items.filter((pod) => mayLeave(pod, options))
    if (left.length === 0) return
    const remaining: Remaining[] = []
    for (const pod of left) {
      const refusal = evicted.has(uidOf(pod)) ? undefined : await evict(client, pod, signal)
      if (refusal === undefined) evicted.add(uidOf(pod))
      remaining.push({ pod: nameOf(pod), refusal })
    }
    report(`${left.length} pod${left.length === 1 ? '' : 's'} left: ${remaining.map(describe).join('; ')}`)
    if (performance.now() + interval > end) throw new DrainTimeout(node, timeout, remaining)
    await pause(interval, signal)
    signal?.throwIfAborted()
  }
}

/** Whether a drain evicts a pod: not pods of a DaemonSet, not mirror pods, not pods that have completed. */
export function mayLeave(pod: KubeObject, { keepOwnerless = false }: Pick<DrainOptions, 'keepOwnerless'> = {}): boolean {
  const { metadata } = pod
  const owners = metadata.ownerReferences ?? []
  if (hasEnded(pod)) return false
  if (metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined) return false
  if (keepOwnerless && owners.length === 0) return false
  return !owners.some(({ kind, controller }) => kind === 'DaemonSet' && controller !== false)
}

/** Evicts a pod; returns why the server refuses it for now: a disruption budget, or a server in trouble. */
async function evict(client: KubeClient, { metadata }: KubeObject, signal?: AbortSignal): Promise<string | undefined> {
  const { name, namespace } = metadata
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } }
  try {
    await client.request('POST', `${pathOf(core.pod, namespace, name)}/eviction`, { body: JSON.stringify(eviction), signal })
    return undefined
  } catch (error) {
    if (isNotFound(error)) return undefined
    signal?.throwIfAborted()
    if (error instanceof KubeError && (error.status === 0 || error.status === 429 || error.status >= 500))
      return error.causes.join(', ') || error.message
    throw error
  }
}

function describe({ pod, refusal }: Remaining): string {
  return refusal === undefined ? `${pod} is ending` : `${pod}: ${refusal}`
}

function nameOf({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name}`
}

function uidOf(pod: KubeObject): string {
  return pod.metadata.uid ?? nameOf(pod)
}
