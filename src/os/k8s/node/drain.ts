/** Drains a node before it goes down: cordons it, then evicts each pod. */
import { core, type KubeClient, kubeClient } from '../../../kube/client.ts'
import { isNotFound, KubeError } from '../../../kube/errors.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { pause } from '../../../timing/pause.ts'
import type { Machine } from '../../area.ts'
import { NodeStatus } from '../resources/node.ts'
import { Nodename } from '../resources/nodename.ts'
import { nodeAccess } from './access.ts'
import { cordonMark } from './patch.ts'

/** What draining uses of the machine. */
export type Draining = Pick<Machine, 'store' | 'log'> & { kernel: { files: Pick<Machine['kernel']['files'], 'readTextIfThere'> } }

const retryDelay = 1000

/** Whether the node is in the cluster, so that it can be drained. */
export function isRegistered({ store }: Pick<Draining, 'store'>): boolean {
  const name = store.get(Nodename, 'nodename')?.spec.nodename
  return name !== undefined && store.get(NodeStatus, name) !== undefined
}

/** Cordons this node and evicts its pods, except those of daemon sets and static pods. Rejects when the signal is aborted first. */
export async function cordonAndDrain({ store, log, kernel }: Draining, signal: AbortSignal): Promise<void> {
  const name = store.get(Nodename, 'nodename')?.spec.nodename
  const access = nodeAccess(store, kernel.files)
  if (!name || !access) return
  const client = kubeClient(access)
  try {
    const body = { metadata: { annotations: { [cordonMark]: 'true' } }, spec: { unschedulable: true } }
    await client.patch(core.node, name, undefined, { type: 'application/merge-patch+json', body }, { signal })
    const { items } = await client.list(core.pod, { fieldSelector: `spec.nodeName=${name}` }, { signal })
    const leaving = items.filter(movable)
    log.info('draining the node', { pods: leaving.length })
    await Promise.all(leaving.map((pod) => evict(client, pod, signal)))
  } finally {
    client.close()
  }
}

/** Pods that are recreated elsewhere, or that would be lost with the node anyway. */
export function movable({ metadata, status }: KubeObject): boolean {
  const { phase } = (status ?? {}) as { phase?: string }
  const daemon = metadata.ownerReferences?.some(({ kind, controller }) => controller && kind === 'DaemonSet')
  const mirror = metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined
  return !daemon && !mirror && phase !== 'Succeeded' && phase !== 'Failed'
}

/** Requests the eviction until it is accepted, then waits until the pod is gone. */
async function evict(client: KubeClient, pod: KubeObject, signal: AbortSignal): Promise<void> {
  const { name = '', namespace = '', uid } = pod.metadata
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } }
  for (let accepted = false; ; ) {
    try {
      if (!accepted) {
        await client.request('POST', `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, { body: JSON.stringify(eviction), signal })
        accepted = true
      }
      if ((await client.get(core.pod, name, namespace, { signal })).metadata.uid !== uid) return
    } catch (error) {
      if (isNotFound(error)) return
      // Its disruption budget may allow it later; the API may be unavailable for a moment.
      if (signal.aborted || !(error instanceof KubeError) || (error.status > 0 && error.status !== 429 && error.status < 500)) throw error
    }
    if (signal.aborted) throw signal.reason
    await pause(retryDelay, signal)
  }
}
