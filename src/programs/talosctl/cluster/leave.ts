/** How a node leaves: its pods move away, it is reset, which gives up its places in etcd and discovery, and Kubernetes forgets it. */

import { core, type KubeClient, kubeClient } from '../../../kube/client.ts'
import { drain } from '../../../kube/drain.ts'
import { isNotFound } from '../../../kube/errors.ts'
import { accessOf, parseKubeconfig } from '../../../kube/kubeconfig.ts'
import { pause } from '../../../timing/pause.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { nodePaths } from '../../node-supervisor/layout.ts'
import { isAlive } from '../../node-supervisor/process-identity.ts'
import { readStatus } from '../../node-supervisor/status.ts'

const lookInterval = 50
const drainTimeout = 30_000

/** What leaving takes. */
export interface Leaving {
  /** The name of the node. */
  node: string
  /** The administrator's kubeconfig. */
  kubeconfig: string
  signal: AbortSignal
  /** Whether the node does not run. */
  isDown(): boolean | Promise<boolean>
  /** Resets it; it shuts down afterwards. */
  reset(): Promise<void>
  /** Where to look when it does not shut down. */
  console: string
  report(what: string): void
}

/** Lets a node leave and returns when it has shut down; one that does not run any more is only taken out of Kubernetes. */
export async function leaveCluster({ node, kubeconfig, signal, isDown, reset, console, report }: Leaving): Promise<void> {
  const client = kubeClient(accessOf(parseKubeconfig(kubeconfig)))
  try {
    if (!(await isDown())) {
      report('drain')
      await moveAway(client, node, signal, report)
      report('reset')
      await reset()
      while (!(await isDown())) {
        if (signal.aborted) throw new Error(`node "${node}" was reset but does not shut down: look at ${console}`)
        await pause(lookInterval, signal)
      }
    }
    await absentIsFine(client.delete(core.node, node))
  } finally {
    client.close()
  }
}

/** Whether a node's supervisor is gone, or holds a node that has shut down. */
export function hasStopped(directory: string): boolean {
  const status = readStatus(nodePaths(directory).status)
  return !status || status.state === 'stopped' || !isAlive(status.supervisor)
}

/** Pods that cannot be evicted in time do not keep a node: its removal was requested. */
async function moveAway(client: KubeClient, name: string, signal: AbortSignal, report: (what: string) => void): Promise<void> {
  try {
    await absentIsFine(drain(client, name, { timeout: drainTimeout, interval: 200, signal }))
  } catch (error) {
    if (signal.aborted) throw error
    report(`drain given up: ${messageOf(error)}`)
  }
}

async function absentIsFine(act: Promise<void>): Promise<void> {
  try {
    await act
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}
