/**
 * What each client holds of a server: connections, calls and pending bytes. A client is an identity at an address. It shares
 * one set of limits with all clients of its address, one with all clients of its identity, and one with all clients. Where a
 * limit is exceeded, the client that holds most loses, so that no client can starve the others.
 */
import { parseIp } from '../../wire/ip.ts'
import { CoolDown } from './cool-down.ts'
import type { Amounts, HeldConnection, Holder, Resource, ShareLimits } from './holder.ts'
import { Portion, Turns } from './turns.ts'

/** Clients that share limits. */
class Group {
  readonly used: Record<Resource, number> = { connections: 0, calls: 0, bytes: 0 }
  readonly shares = new Set<Share>()
  /** Bytes are checked once per turn of the event loop, outside of the code that charged them. */
  due = false

  constructor(
    readonly key: string,
    readonly name: string,
    readonly limits: Amounts,
  ) {}

  greediest(resource: Resource): Share | undefined {
    let most: Share | undefined
    for (const share of this.shares) if (!most || share.used[resource] > most.used[resource]) most = share
    return most
  }

  readonly relieve = (): void => {
    this.due = false
    while (this.used.bytes > this.limits.bytes) {
      const share = this.greediest('bytes')
      const holder = share?.greediest()
      if (!share || !holder) return
      share.countEnded()
      collectSoon()
      holder.exhaust(`${this.name} waits for more than ${this.limits.bytes} bytes, and this takes most of them`)
      if (holder.charged > 0) return
    }
  }
}

/** Milliseconds between two garbage collections. */
const collectInterval = 1000

let collected = -collectInterval

/** Memory taken from a client must be available to others now, not at the runtime's next collection: memory is limited. */
function collectSoon(): void {
  const now = performance.now()
  if (now - collected < collectInterval) return
  collected = now
  setImmediate(() => Bun.gc(false))
}

/** What one client holds. */
export class Share {
  /** How many of its bytes are processed per turn. */
  readonly portion: Portion
  readonly used: Record<Resource, number> = { connections: 0, calls: 0, bytes: 0 }
  readonly #calls = new Map<Holder, number>()
  readonly #connections = new Set<HeldConnection>()
  readonly #groups: readonly Group[]
  readonly #coolDown: CoolDown
  readonly #empty: () => void

  /** `empty` is called when it no longer holds anything. */
  constructor(
    readonly key: string,
    groups: readonly Group[],
    turns: Turns,
    coolDown: CoolDown,
    empty: () => void,
  ) {
    this.portion = new Portion(turns)
    this.#coolDown = coolDown
    this.#groups = groups
    this.#empty = empty
  }

  /** Counts bytes that start or stop waiting. */
  charge(bytes: number): void {
    this.used.bytes += bytes
    for (const group of this.#groups) {
      group.used.bytes += bytes
      if (group.used.bytes <= group.limits.bytes || group.due) continue
      group.due = true
      queueMicrotask(group.relieve)
    }
  }

  /** Counts a call, as several when it fans out; returns the reason when it is refused. */
  open(call: Holder, weight = 1): string | undefined {
    const left = this.#coolDown.left(this.key)
    if (left > 0) {
      this.#look()
      return `calls of this client repeatedly exceeded their limits: retry in ${Math.ceil(left)} ms`
    }
    for (const group of this.#groups)
      while (group.used.calls + weight > group.limits.calls) {
        const most = group.greediest('calls')
        if (!most || most.used.calls <= this.used.calls + weight) {
          this.#look()
          return `${group.name} has too many calls open: at most ${group.limits.calls} at a time`
        }
        most.#endOne(`${group.name} has more than ${group.limits.calls} calls open, and this client most of them`)
      }
    this.#calls.set(call, (this.#calls.get(call) ?? 0) + weight)
    this.#count('calls', weight)
    return undefined
  }

  /** Ends one of its calls because it holds too much; after repeated ends the client cools down. */
  countEnded(): void {
    this.#coolDown.count(this.key)
  }

  /** A call has ended. */
  close(call: Holder): void {
    const weight = this.#calls.get(call)
    if (weight === undefined) return
    this.#calls.delete(call)
    this.#count('calls', -weight)
  }

  /** Counts a connection; returns the reason when it is refused. May evict connections of others. */
  connect(connection: HeldConnection): string | undefined {
    this.#connections.add(connection)
    this.#count('connections', 1)
    for (const group of this.#groups)
      while (group.used.connections > group.limits.connections) {
        const most = group.greediest('connections')
        const leaves =
          most && (most.#dispensable(connection) ?? (most.used.connections > this.used.connections ? most.#oldest() : undefined))
        if (!most || !leaves) {
          this.disconnect(connection)
          return `${group.name} has too many connections: at most ${group.limits.connections}`
        }
        most.disconnect(leaves)
        leaves.exhaust('closed to admit another client')
      }
    return undefined
  }

  /** A connection has ended. */
  disconnect(connection: HeldConnection): void {
    if (this.#connections.delete(connection)) this.#count('connections', -1)
  }

  /** The holder of most bytes. */
  greediest(): Holder | undefined {
    let most: Holder | undefined
    for (const holders of [this.#calls.keys(), this.#connections])
      for (const holder of holders) if (holder.charged > (most?.charged ?? 0)) most = holder
    return most
  }

  /** Ends the call with most bytes; the latest when none has any. */
  #endOne(message: string): void {
    let victim: Holder | undefined
    for (const call of this.#calls.keys()) if (!victim || call.charged >= victim.charged) victim = call
    if (!victim) return
    this.close(victim)
    victim.exhaust(message)
  }

  /** The oldest connection without calls; otherwise the oldest whose calls all still wait for their request. */
  #dispensable(but: HeldConnection): HeldConnection | undefined {
    let waiting: HeldConnection | undefined
    for (const connection of this.#connections) {
      if (connection === but) continue
      if (connection.size === 0) return connection
      if (connection.awaitsRequests) waiting ??= connection
    }
    return waiting
  }

  #oldest(): HeldConnection | undefined {
    for (const connection of this.#connections) return connection
    return undefined
  }

  #count(resource: 'connections' | 'calls', by: number): void {
    this.used[resource] += by
    for (const group of this.#groups) group.used[resource] += by
    if (by < 0) this.#look()
  }

  /** Whether it has neither connections nor calls. */
  get isEmpty(): boolean {
    return this.used.connections === 0 && this.used.calls === 0
  }

  #look(): void {
    if (this.isEmpty) this.#empty()
  }
}

/** Shares of clients without connections and calls that are kept, and addresses whose keys are. */
const mostIdle = 64

const mostPlaces = 256

/** All clients of a server. */
export class Shares {
  readonly #limits: ShareLimits
  readonly #shares = new Map<string, Share>()
  readonly #groups = new Map<string, Group>()
  /** Shares that were empty at least once since they were added. */
  readonly #idle = new Map<Share, readonly Group[]>()
  /** The keys of addresses. */
  readonly #places = new Map<string, string>()
  readonly #all: Group
  readonly #turns = new Turns()
  readonly #coolDown: CoolDown

  /** `elapsed`: milliseconds of a monotonic clock. */
  constructor(limits: ShareLimits, elapsed?: () => number) {
    this.#limits = limits
    this.#coolDown = new CoolDown(elapsed)
    this.#all = new Group('', 'the server', limits.all)
  }

  /** The share of a client; a client without identity is counted by its address, one without address by its identity. */
  of({ address, identity }: { readonly address?: string | undefined; readonly identity?: string | undefined }): Share {
    const place = address === undefined ? '' : this.#place(address)
    const key = `${identity ?? ''}@${place}`
    const known = this.#shares.get(key)
    if (known) return known
    const groups = [this.#all]
    if (place !== '') groups.push(this.#group(`address ${place}`, `address ${place}`, this.#limits.address))
    if (identity !== undefined) groups.push(this.#group(`identity ${identity}`, 'this identity', this.#limits.identity))
    const share = new Share(key, groups, this.#turns, this.#coolDown, () => this.#rest(share, groups))
    for (const group of groups) group.shares.add(share)
    this.#shares.set(key, share)
    return share
  }

  #group(key: string, name: string, limits: Amounts): Group {
    const known = this.#groups.get(key)
    if (known) return known
    const group = new Group(key, name, limits)
    this.#groups.set(key, group)
    return group
  }

  #place(address: string): string {
    let place = this.#places.get(address)
    if (place === undefined) {
      if (this.#places.size >= mostPlaces) this.#places.clear()
      place = addressKey(address)
      this.#places.set(address, place)
    }
    return place
  }

  /** Keeps some empty shares: a caller that comes through another node has no connection here between its calls. */
  #rest(share: Share, groups: readonly Group[]): void {
    this.#idle.set(share, groups)
    if (this.#idle.size <= mostIdle) return
    for (const [oldest, of] of this.#idle) {
      this.#idle.delete(oldest)
      if (oldest.isEmpty) this.#forget(oldest, of)
      return
    }
  }

  #forget(share: Share, groups: readonly Group[]): void {
    if (this.#shares.get(share.key) !== share) return
    this.#shares.delete(share.key)
    for (const group of groups) {
      group.shares.delete(share)
      if (group.shares.size === 0 && this.#groups.get(group.key) === group) this.#groups.delete(group.key)
    }
  }
}

/** What counts as one address: an IPv4 address, or a /64 network of IPv6. */
export function addressKey(address: string): string {
  const text = address.replace(/%.*$/, '')
  const bytes = parseIp(text)
  if (!bytes || bytes.length === 4) return text
  if (bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255) return bytes.subarray(12).join('.')
  return `${Buffer.from(bytes.subarray(0, 8)).toString('hex')}/64`
}
