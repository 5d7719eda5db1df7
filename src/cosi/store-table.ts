/** The resources of one type and namespace with a ring of their most recent events, and how a watcher reads them. */

import { StoreError } from './errors.ts'
import type { Resource } from './resource.ts'
import { matches, type Selector } from './selector.ts'

/** A change of a resource. `bookmark` orders the events of one (namespace, type). */
export type StoreEvent<S = unknown> =
  | {
      readonly type: 'created' | 'destroyed'
      readonly resource: Resource<S>
      readonly old?: undefined
      readonly bookmark: number
      /** It existed when the watch began: not an event of the past. */
      readonly present?: true
    }
  | { readonly type: 'updated'; readonly resource: Resource<S>; readonly old: Resource<S>; readonly bookmark: number }
  | { readonly type: 'bootstrapped'; readonly bookmark: number; readonly resource?: undefined; readonly old?: undefined }

/** The namespace to use. */
export interface Scope {
  namespace?: string | undefined
}

/** Selects ids. */
export interface IdMatcher {
  test(id: string): boolean
}

/** Selects resources of a type. */
export interface Query extends Scope {
  /** Any of the selectors must match. */
  labels?: readonly Selector[] | undefined
  id?: IdMatcher | undefined
}

/** Options of a watch. */
export interface WatchOptions extends Query {
  only?: string | undefined
  /** Start with all existing resources, then 'bootstrapped', then changes. */
  bootstrap?: boolean | undefined
  /** Start with this many of the most recent events. */
  tail?: number | undefined
  /** Start with everything after this bookmark. */
  after?: number | undefined
}

/** Events that a table keeps. */
const capacity = 1000
/** How many events before the ring's end a slow watcher fails. */
const gap = 10

/** The resources of one type and namespace, their most recent events, and who is called on changes. */
export class Table {
  readonly resources = new Map<string, Resource>()
  readonly ring: StoreEvent[] = []
  readonly subscribers = new Set<(event: StoreEvent) => void>()
  next = 0

  constructor(readonly failed: (error: unknown) => void) {}

  /** The event at a position that the ring holds. */
  at(position: number): StoreEvent {
    const event = this.ring[position % capacity]
    if (!event) throw new StoreError('overrun', `watch: event ${position} is not kept`)
    return event
  }

  emit(event: StoreEvent): void {
    this.ring[event.bookmark % capacity] = event
    // A copy, because a callback may add or remove subscribers.
    if (this.subscribers.size > 0)
      for (const subscriber of [...this.subscribers])
        try {
          subscriber(event)
        } catch (error) {
          // The change is made, and the other subscribers must still be called.
          this.failed(error)
        }
  }

  get oldest(): number {
    return Math.max(0, this.next - capacity)
  }

  /** The events that a watch begins with. */
  beginning(options: WatchOptions): Iterable<StoreEvent> {
    const { bootstrap, tail, after, only } = options
    if (bootstrap) {
      const present = [...this.resources.values()]
        .filter((resource) => selected(resource, options) && (!only || resource.metadata.id === only))
        .sort(byId)
      return presentEvents(present, this.next - 1)
    }
    if (tail === undefined && after === undefined) return []
    if (after !== undefined && (after < this.oldest - 1 || after >= this.next))
      throw new StoreError('overrun', `watch: bookmark ${after} is not among the events that are kept, list and watch again`)
    const past: StoreEvent[] = []
    for (let at = after === undefined ? this.oldest : after + 1; at < this.next; at++) {
      const seen = asSeen(this.at(at), options)
      if (seen) past.push(seen)
    }
    return tail === undefined ? past : past.slice(-tail)
  }
}

/** Follows a table from where the options begin; see `Store.watch`. */
export async function* watchTable(
  table: Table,
  type: string,
  options: WatchOptions & { signal?: AbortSignal },
): AsyncGenerator<StoreEvent, void> {
  const { signal } = options
  const beginning = table.beginning(options)
  let position = table.next
  let wake = () => {}
  const nudge = () => wake()
  table.subscribers.add(nudge)
  signal?.addEventListener('abort', nudge)
  try {
    for (const event of beginning) yield event
    while (!signal?.aborted) {
      if (position < table.next) {
        // Near the ring's end an event could be overwritten between two reads: fail a little earlier.
        if (position < table.oldest + (table.next > capacity ? gap : 0))
          throw new StoreError('overrun', `watch "${type}": the reader is ${table.next - position} events behind, watch again`)
        const event = table.at(position)
        position++
        const seen = asSeen(event, options)
        if (seen) yield seen
        continue
      }
      const changed = Promise.withResolvers<void>()
      wake = changed.resolve
      if (position === table.next && !signal?.aborted) await changed.promise
    }
  } finally {
    table.subscribers.delete(nudge)
    signal?.removeEventListener('abort', nudge)
  }
}

/**
 * What is present, as events. Each is made when it is taken, for a watcher may be slow: it must not hold those that it had already,
 * nor what was encoded for it.
 */
export function* presentEvents(present: readonly Resource[], bookmark: number): Generator<StoreEvent> {
  for (const resource of present) yield { type: 'created', resource, bookmark, present: true }
  yield { type: 'bootstrapped', bookmark }
}

/** Orders resources by id. */
export function byId(a: Resource, b: Resource): number {
  return a.metadata.id < b.metadata.id ? -1 : a.metadata.id > b.metadata.id ? 1 : 0
}

/** Whether a query selects a resource. */
export function selected({ metadata }: Resource, { labels, id }: Query): boolean {
  return (!id || id.test(metadata.id)) && (!labels || labels.length === 0 || labels.some((selector) => matches(metadata, selector)))
}

/** What a watcher sees of an event: an update into or out of its query is a creation or a destruction. */
export function asSeen(event: StoreEvent, options: WatchOptions): StoreEvent | undefined {
  if (event.type === 'bootstrapped') return undefined
  if (options.only !== undefined && event.resource.metadata.id !== options.only) return undefined
  const now = selected(event.resource, options)
  if (event.type !== 'updated') return now ? event : undefined
  const before = selected(event.old, options)
  if (now && before) return event
  if (now) return { type: 'created', resource: event.resource, bookmark: event.bookmark }
  return before ? { type: 'destroyed', resource: event.old, bookmark: event.bookmark } : undefined
}
