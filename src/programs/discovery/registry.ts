/**
 * What the members of clusters say about themselves, kept in memory until its time runs out.
 * The server cannot read any of it: members seal their words with their cluster's secret. Everything has a bound,
 * for whoever can connect may write.
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

/** How much the registry takes. */
export const limits = { clusters: 256, affiliates: 1024, id: 256, data: 2048, endpoints: 64, endpoint: 32, ttl: 30 * 60_000 }

interface Stored {
  data: Uint8Array
  expires: number
  /** By the endpoint's bytes in base64: each has a time of its own. */
  endpoints: Map<string, { bytes: Uint8Array; expires: number }>
}

interface Cluster {
  affiliates: Map<string, Stored>
  listeners: Set<(change: Change) => void>
}

/** The members of all clusters. */
export class Registry {
  readonly #clusters = new Map<string, Cluster>()

  constructor(private readonly now: () => number = Date.now) {}

  /** Takes what a member says; data left out keeps what it said before, endpoints add to those known. */
  update(clusterId: string, id: string, update: { data?: Uint8Array; endpoints?: readonly Uint8Array[]; ttl: number }): void {
    checkId('cluster id', clusterId)
    checkId('affiliate id', id)
    const { data, endpoints = [], ttl } = update
    if (!(ttl > 0 && ttl <= limits.ttl)) throw new RegistryError('invalid', `ttl must lie between 0 and ${limits.ttl / 1000} seconds`)
    if (data && data.length > limits.data) throw new RegistryError('invalid', `affiliate data is larger than ${limits.data} bytes`)
    if (endpoints.some((bytes) => bytes.length > limits.endpoint))
      throw new RegistryError('invalid', `an endpoint is larger than ${limits.endpoint} bytes`)
    const cluster = this.#open(clusterId)
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
    const changed = !known || !sameBytes(known.data, next.data) || !sameKeys(known.endpoints, next.endpoints)
    if (changed) tell(cluster, { affiliate: affiliate(id, next), deleted: false })
  }

  /** Forgets a member. */
  remove(clusterId: string, id: string): void {
    checkId('cluster id', clusterId)
    checkId('affiliate id', id)
    const cluster = this.#clusters.get(clusterId)
    const known = cluster?.affiliates.get(id)
    if (!cluster || !known) return
    cluster.affiliates.delete(id)
    tell(cluster, { affiliate: affiliate(id, known), deleted: true })
    this.#dropIfIdle(clusterId, cluster)
  }

  /** All members of a cluster. */
  list(clusterId: string): Affiliate[] {
    checkId('cluster id', clusterId)
    return [...(this.#clusters.get(clusterId)?.affiliates ?? [])].map(([id, stored]) => affiliate(id, stored))
  }

  /** Calls back for each change from now on; returns how to stop. */
  subscribe(clusterId: string, listener: (change: Change) => void): () => void {
    checkId('cluster id', clusterId)
    const cluster = this.#open(clusterId)
    cluster.listeners.add(listener)
    return () => {
      cluster.listeners.delete(listener)
      this.#dropIfIdle(clusterId, cluster)
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
        if (stored.endpoints.size !== before) tell(cluster, { affiliate: affiliate(id, stored), deleted: false })
      }
      this.#dropIfIdle(clusterId, cluster)
    }
  }

  #open(clusterId: string): Cluster {
    const known = this.#clusters.get(clusterId)
    if (known) return known
    if (this.#clusters.size >= limits.clusters) throw new RegistryError('full', `${limits.clusters} clusters are kept already`)
    const cluster: Cluster = { affiliates: new Map(), listeners: new Set() }
    this.#clusters.set(clusterId, cluster)
    return cluster
  }

  #dropIfIdle(clusterId: string, cluster: Cluster): void {
    if (cluster.affiliates.size === 0 && cluster.listeners.size === 0 && this.#clusters.get(clusterId) === cluster)
      this.#clusters.delete(clusterId)
  }
}

function checkId(what: string, id: string): void {
  if (id === '' || id.length > limits.id) throw new RegistryError('invalid', `${what} must have 1 to ${limits.id} characters`)
}

function affiliate(id: string, { data, endpoints }: Stored): Affiliate {
  return { id, data, endpoints: [...endpoints.values()].map(({ bytes }) => bytes) }
}

function tell(cluster: Cluster, change: Change): void {
  for (const listener of cluster.listeners) listener(change)
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}

const sameKeys = (a: ReadonlyMap<string, unknown>, b: ReadonlyMap<string, unknown>): boolean =>
  a.size === b.size && [...a.keys()].every((key) => b.has(key))
