/**
 * The records of cluster members, kept in memory until they expire.
 * The server cannot read them: members encrypt their data with their cluster's secret. Everything is bounded,
 * because any client that can connect may write. Where a bound is shared by all callers, the address with the largest
 * use loses to one with less, so that a few addresses cannot lock others out.
 */

/** One member as others see it. */
export interface Affiliate {
  id: string
  data: Uint8Array
  endpoints: Uint8Array[]
}

/** A member changed, or went. */
export interface Change {
  affiliate: Affiliate
  deleted: boolean
}

/** A request that the registry will not serve. */
export class RegistryError extends Error {
  override name = 'RegistryError'
  constructor(
    readonly kind: 'invalid' | 'full',
    message: string,
  ) {
    super(message)
  }
}

/** How much the registry takes; `awaited` are clusters without members that are watched, in all and for one address. */
export const limits = {
  clusters: 256,
  awaited: 1024,
  awaitedByOne: 16,
  affiliates: 1024,
  id: 256,
  data: 2048,
  endpoints: 64,
  endpoint: 32,
  ttl: 30 * 60_000,
}

interface Stored {
  data: Uint8Array
  expires: number
  /** By the endpoint's bytes in base64: each has a time of its own. */
  endpoints: Map<string, { bytes: Uint8Array; expires: number }>
}

interface Cluster {
  affiliates: Map<string, Stored>
  /** The address that opened it, and when a member was last heard of. */
  readonly from: string
  updated: number
}

/** Who watches a cluster. */
export interface Watcher {
  /** The caller's address; callers of one address share what it may take. */
  readonly from: string
  changed(change: Change): void
  /** The place is needed for another address. */
  ended(error: RegistryError): void
}

/** The members of all clusters. */
export class Registry {
  readonly #clusters = new Map<string, Cluster>()
  readonly #watchers = new Map<string, Set<Watcher>>()

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Applies an update from a member at an address; omitted data keeps its previous value, endpoints are added to the known ones. */
  update(
    clusterId: string,
    id: string,
    update: { data?: Uint8Array | undefined; endpoints?: readonly Uint8Array[]; ttl: number },
    from = '',
  ): void {
    checkId('cluster id', clusterId)
    checkId('affiliate id', id)
    const { data, endpoints = [], ttl } = update
    if (!(ttl > 0 && ttl <= limits.ttl)) throw new RegistryError('invalid', `ttl must lie between 0 and ${limits.ttl / 1000} seconds`)
    if (data && data.length > limits.data) throw new RegistryError('invalid', `affiliate data is larger than ${limits.data} bytes`)
    if (endpoints.some((bytes) => bytes.length > limits.endpoint))
      throw new RegistryError('invalid', `an endpoint is larger than ${limits.endpoint} bytes`)
    const cluster = this.#open(clusterId, from)
    const known = cluster.affiliates.get(id)
    if (!known && cluster.affiliates.size >= limits.affiliates)
      throw new RegistryError('full', `the cluster has ${limits.affiliates} affiliates already`)
    const expires = this.now() + ttl
    const next: Stored = { data: data ?? known?.data ?? new Uint8Array(), expires, endpoints: new Map(known?.endpoints) }
    for (const bytes of endpoints) {
      const key = Buffer.from(bytes).toString('base64')
      next.endpoints.delete(key) // those named last stand last
      next.endpoints.set(key, { bytes, expires })
    }
    for (const oldest of next.endpoints.keys()) {
      if (next.endpoints.size <= limits.endpoints) break
      next.endpoints.delete(oldest)
    }
    cluster.affiliates.set(id, next)
    cluster.updated = this.now()
    const changed = !known || !sameBytes(known.data, next.data) || !sameKeys(known.endpoints, next.endpoints)
    if (changed) this.#notify(clusterId, { affiliate: affiliate(id, next), deleted: false })
  }

  /** Forgets a member. */
  remove(clusterId: string, id: string): void {
    checkId('cluster id', clusterId)
    checkId('affiliate id', id)
    const cluster = this.#clusters.get(clusterId)
    const known = cluster?.affiliates.get(id)
    if (!cluster || !known) return
    cluster.affiliates.delete(id)
    if (cluster.affiliates.size === 0) this.#clusters.delete(clusterId)
    this.#notify(clusterId, { affiliate: affiliate(id, known), deleted: true })
  }

  /** All members of a cluster. */
  list(clusterId: string): Affiliate[] {
    checkId('cluster id', clusterId)
    return [...(this.#clusters.get(clusterId)?.affiliates ?? [])].map(([id, stored]) => affiliate(id, stored))
  }

  /** Notifies a watcher of each change from now on; returns a function that stops it. A cluster without members never displaces one with. */
  subscribe(clusterId: string, watcher: Watcher): () => void {
    checkId('cluster id', clusterId)
    if (!this.#clusters.has(clusterId)) this.#awaitCluster(clusterId, watcher.from)
    const watchers = this.#watchers.get(clusterId) ?? new Set()
    this.#watchers.set(clusterId, watchers.add(watcher))
    return () => {
      watchers.delete(watcher)
      if (watchers.size === 0 && this.#watchers.get(clusterId) === watchers) this.#watchers.delete(clusterId)
    }
  }

  /** Forgets whatever has outlived its time; called now and then. */
  sweep(): void {
    const now = this.now()
    for (const [clusterId, cluster] of this.#clusters) {
      for (const [id, stored] of cluster.affiliates) {
        if (stored.expires <= now) {
          this.remove(clusterId, id)
          continue
        }
        const before = stored.endpoints.size
        for (const [key, { expires }] of stored.endpoints) if (expires <= now) stored.endpoints.delete(key)
        if (stored.endpoints.size !== before) this.#notify(clusterId, { affiliate: affiliate(id, stored), deleted: false })
      }
    }
  }

  #open(clusterId: string, from: string): Cluster {
    const known = this.#clusters.get(clusterId)
    if (known) return known
    if (this.#clusters.size >= limits.clusters) this.#giveUpCluster(from)
    const cluster: Cluster = { affiliates: new Map(), from, updated: this.now() }
    this.#clusters.set(clusterId, cluster)
    return cluster
  }

  /** Gives up the longest unchanged cluster of the address that has the most. Throws when that is no more than the caller's. */
  #giveUpCluster(from: string): void {
    const held = count([...this.#clusters.values()].map((cluster) => cluster.from))
    const greedy = greedierThan(from, held)
    if (greedy === undefined) throw new RegistryError('full', `${limits.clusters} clusters are kept already`)
    const [oldest] = [...this.#clusters]
      .filter(([, cluster]) => cluster.from === greedy)
      .sort(([, one], [, other]) => one.updated - other.updated)
    if (!oldest) return
    const [clusterId, cluster] = oldest
    for (const id of [...cluster.affiliates.keys()]) this.remove(clusterId, id)
    this.#clusters.delete(clusterId)
  }

  /** Makes sure that an address may watch one more cluster that has no members. */
  #awaitCluster(clusterId: string, from: string): void {
    const awaited = [...this.#watchers].filter(([id]) => !this.#clusters.has(id))
    const held = count(awaited.flatMap(([, watchers]) => [...new Set([...watchers].map((watcher) => watcher.from))]))
    const own = awaited.some(([id, watchers]) => id === clusterId && [...watchers].some((watcher) => watcher.from === from))
    if (!own && (held.get(from) ?? 0) >= limits.awaitedByOne)
      throw new RegistryError('full', `your address watches ${limits.awaitedByOne} clusters without members already`)
    if (this.#watchers.has(clusterId) || awaited.length < limits.awaited) return
    const greedy = greedierThan(from, held)
    const [oldest, ended] = awaited.find(([, watchers]) => [...watchers].some((watcher) => watcher.from === greedy)) ?? []
    if (oldest === undefined || !ended) throw new RegistryError('full', `${limits.awaited} clusters without members are watched already`)
    this.#watchers.delete(oldest)
    for (const watcher of ended) watcher.ended(new RegistryError('full', 'your address watches the most clusters without members'))
  }

  #notify(clusterId: string, change: Change): void {
    for (const watcher of this.#watchers.get(clusterId) ?? []) watcher.changed(change)
  }
}

/** How often each address occurs. */
function count(addresses: readonly string[]): Map<string, number> {
  const counted = new Map<string, number>()
  for (const address of addresses) counted.set(address, (counted.get(address) ?? 0) + 1)
  return counted
}

/** The address that holds the most; undefined when the caller would hold as much once it has one more. */
function greedierThan(from: string, held: ReadonlyMap<string, number>): string | undefined {
  const [address, most] = [...held].reduce((top, next) => (next[1] > top[1] ? next : top), ['', 0])
  return most > (held.get(from) ?? 0) + 1 ? address : undefined
}

function checkId(what: string, id: string): void {
  if (id === '' || id.length > limits.id) throw new RegistryError('invalid', `${what} must have 1 to ${limits.id} characters`)
}

function affiliate(id: string, { data, endpoints }: Stored): Affiliate {
  return { id, data, endpoints: [...endpoints.values()].map(({ bytes }) => bytes) }
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}

const sameKeys = (a: ReadonlyMap<string, unknown>, b: ReadonlyMap<string, unknown>): boolean =>
  a.size === b.size && [...a.keys()].every((key) => b.has(key))
