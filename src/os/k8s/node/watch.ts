import { pause } from '../../../cosi/pause.ts'
import { core, type KubeClient } from '../../../kube/client.ts'
import { isNotFound, KubeError } from '../../../kube/errors.ts'
import type { KubeObject } from '../../../kube/object.ts'

const retryDelay = 500
const longestDelay = 15_000

/** Calls back with this node's object, and with undefined when it is not there, whenever that changes; until the signal. */
export async function watchNode(
  client: KubeClient,
  nodename: string,
  changed: (node: KubeObject | undefined) => void,
  signal: AbortSignal,
  tell: (error?: unknown) => void = () => {},
): Promise<never> {
  const query = { fieldSelector: `metadata.name=${nodename}` }
  let delay = retryDelay
  for (;;) {
    try {
      const { items, resourceVersion } = await client.list(core.node, query, { signal })
      changed(items[0])
      tell()
      delay = retryDelay
      for await (const { type, object } of client.watch(core.node, { ...query, resourceVersion }, { signal })) {
        if (type === 'BOOKMARK') continue
        changed(type === 'DELETED' ? undefined : object)
      }
      // A server that ends watches at once must not be asked for lists without a pause.
      await pause(retryDelay, signal)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (!(error instanceof KubeError)) throw error
      // A node may only look at itself, and is refused even that before it has registered.
      if (isNotFound(error) || error.status === 403) changed(undefined)
      tell(error)
      await pause(delay, signal)
      delay = Math.min(longestDelay, delay * 1.5)
    }
  }
}
