import type { Resource, ResourceType } from './resource.ts'
import type { Store } from './store.ts'

/** Waits until a resource exists and matches; see `Store.until`. */
export function untilMatches<S>(
  store: Store,
  type: ResourceType<S>,
  id: string,
  predicate: (resource: Resource<S>) => boolean,
  { signal, namespace }: { signal?: AbortSignal | undefined; namespace: string },
): Promise<Resource<S>> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const done = (act: () => void) => {
      stop()
      signal?.removeEventListener('abort', onAbort)
      act()
    }
    const onAbort = () => done(() => reject(signal?.reason))
    let stop = () => {}
    const check = () => {
      const resource = store.get(type, id, { namespace })
      if (resource?.metadata.phase === 'running' && predicate(resource)) done(() => resolve(resource))
    }
    stop = store.subscribe(type, check, { namespace, only: id })
    signal?.addEventListener('abort', onAbort)
    check()
  })
}
