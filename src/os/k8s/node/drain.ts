/** Drains this node before it goes down. */
import { kubeClient } from '../../../kube/client.ts'
import { drain } from '../../../kube/drain.ts'
import type { Machine } from '../../area.ts'
import { NodeStatus } from '../resources/node.ts'
import { Nodename } from '../resources/nodename.ts'
import { nodeAccess } from './access.ts'
import { cordonMark } from './patch.ts'

/** What draining uses of the machine. */
export type Draining = Pick<Machine, 'store' | 'log'> & { kernel: { files: Pick<Machine['kernel']['files'], 'readTextIfThere'> } }

/** Whether the node is in the cluster, so that it can be drained. */
export function isRegistered({ store }: Pick<Draining, 'store'>): boolean {
  const name = store.get(Nodename, 'nodename')?.spec.nodename
  return name !== undefined && store.get(NodeStatus, name) !== undefined
}

/**
 * Cordons this node and evicts its pods, except those of daemon sets, static pods and pods that nothing would start elsewhere. A node
 * that an administrator cordoned is not marked, so it stays cordoned at its next start. Rejects when pods are left after `timeout`
 * milliseconds, and when the signal is aborted.
 */
export async function cordonAndDrain({ store, log, kernel }: Draining, timeout: number, signal: AbortSignal): Promise<void> {
  const name = store.get(Nodename, 'nodename')?.spec.nodename
  const access = nodeAccess(store, kernel.files)
  if (!name || !access) return
  const client = kubeClient(access)
  try {
    await drain(client, name, {
      timeout,
      signal,
      keepOwnerless: true,
      annotations: { [cordonMark]: 'true' },
      report: (state) => log.info('draining the node', { state }),
    })
  } finally {
    client.close()
  }
}
