import { core, type KubeClient } from '../../../kube/client.ts'
import { isNotFound, KubeError } from '../../../kube/errors.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { pause } from '../../../timing/pause.ts'

const retryDelay = 500
const longestDelay = 15_000

/** Calls back with this node's object, or undefined when it is missing, on each change until the signal. */
export async function watchNode(
  client: KubeClient,
  nodename: string,
  changed: (node: KubeObject | undefined) => void,
  signal: AbortSignal,
  report: (error?: unknown) => void = () => {},
): Promise<never> {
  const query = { fieldSelector: `metadata.name=${nodename}` }
  let delay = retryDelay
  for (;;) {
    try {
      const { items, resourceVersion } = await client.list(core.node, query, { signal })
      changed(items[0])
      report()
      delay = retryDelay
      for await (const { type, object } of client.watch(core.node, { ...query, resourceVersion }, { signal })) {
        if (type === 'BOOKMARK') continue
        changed(type === 'DELETED' ? undefined : object)
      }
      // The delay protects a server that ends watches at once from continuous lists.
      await pause(retryDelay, signal)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (!(error instanceof KubeError)) throw error
      // A node may only read itself, and is refused even that before it has registered.
      if (isNotFound(error) || error.status === 403) changed(undefined)
      report(error)
      await pause(delay, signal)
      delay = Math.min(longestDelay, delay * 1.5)
    }
  }
}
