/** Follows the objects of a kind: a list, then a watch, and both again whenever the watch ends. */
import { pause } from '../timing/pause.ts'
import type { KubeClient, KubeKind, ListQuery } from './client.ts'
import { KubeError } from './errors.ts'
import type { KubeObject } from './object.ts'

/** The callbacks of a follower. */
export interface Followed {
  /** All objects there are; those of an earlier list that are missing no longer exist. */
  listed(objects: readonly KubeObject[]): void
  /** An object that was created, changed or deleted. */
  changed(object: KubeObject, deleted: boolean): void
  /** A failure of the API server or of the way to it; both are repeated. */
  failed?(error: KubeError): void
}

/** Delays between two lists in milliseconds: after a watch that ended, doubled after each failure up to the longest. */
export interface FollowDelays {
  readonly first?: number
  readonly longest?: number
}

/** Follows until the signal, then returns. Throws only errors that the API server did not cause. */
export async function follow(
  client: KubeClient,
  kind: KubeKind,
  query: ListQuery,
  { listed, changed, failed = () => {} }: Followed,
  signal: AbortSignal,
  { first = 500, longest = 30_000 }: FollowDelays = {},
): Promise<void> {
  for (let delay = first; !signal.aborted; ) {
    try {
      const { items, resourceVersion } = await client.list(kind, query, { signal })
      listed(items)
      delay = first
      for await (const { type, object } of client.watch(kind, { ...query, resourceVersion }, { signal }))
        if (type !== 'BOOKMARK') changed(object, type === 'DELETED')
      // The delay protects a server that ends watches at once from continuous lists.
      await pause(delay, signal)
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof KubeError)) throw error
      failed(error)
      await pause(delay, signal)
      delay = Math.min(longest, delay * 2)
    }
  }
}
