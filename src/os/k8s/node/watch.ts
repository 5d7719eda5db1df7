import { core, type KubeClient } from '../../../kube/client.ts'
import { isNotFound, type KubeError } from '../../../kube/errors.ts'
import { follow } from '../../../kube/follow.ts'
import type { KubeObject } from '../../../kube/object.ts'

const longestDelay = 15_000

/** Calls back with this node's object, or undefined when it is missing, on each change until the signal. */
export function watchNode(
  client: KubeClient,
  nodename: string,
  changed: (node: KubeObject | undefined) => void,
  signal: AbortSignal,
  report: (error?: unknown) => void = () => {},
): Promise<void> {
  const followed = {
    listed([node]: readonly KubeObject[]) {
      changed(node)
      report()
    },
    changed: (node: KubeObject, deleted: boolean) => changed(deleted ? undefined : node),
    failed(error: KubeError) {
      // A node may only read itself, and is refused even that before it has registered.
      if (isNotFound(error) || error.status === 403) changed(undefined)
      report(error)
    },
  }
  return follow(client, core.node, { fieldSelector: `metadata.name=${nodename}` }, followed, signal, { longest: longestDelay })
}
