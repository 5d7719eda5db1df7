/** Conditions over the store: a function names what is missing and is called again whenever something it has read changes. */

import type { ResourceType } from '../cosi/resource.ts'
import type { Store } from '../cosi/store.ts'
import type { StoreView } from './definition.ts'

/** A condition being watched. */
export interface Watch {
  unmet(): string[]
  close(): void
}

/** Calls `wake` within a change of anything the condition's resource types hold; types are learnt from what it reads. */
export function watchCondition(store: Store, condition: (view: StoreView) => string[], wake: () => void): Watch {
  const subscriptions = new Map<string, () => void>()
  const follow = <S>(type: ResourceType<S>, namespace = type.namespace) => {
    const key = `${namespace}/${type.type}`
    if (!subscriptions.has(key)) subscriptions.set(key, store.subscribe(type, wake, { namespace }))
  }
  const view: StoreView = {
    get: (type, id, scope) => {
      follow(type, scope?.namespace)
      return store.get(type, id, scope)
    },
    list: (type, query) => {
      follow(type, query?.namespace)
      return store.list(type, query)
    },
  }
  return {
    unmet: () => condition(view),
    close: () => {
      for (const unsubscribe of subscriptions.values()) unsubscribe()
    },
  }
}
