/**
 * Clients whose calls were ended repeatedly because they held too much are refused for a while: retries of ended calls would
 * otherwise cost others as much as before. The time doubles with each repetition and is forgotten after a quiet period.
 */
import { TokenBucket } from '../../timing/token-bucket.ts'

/** Calls of a client that may be ended, in a burst and per second, before it cools down. A stalled viewer of many logs stays below. */
const ends = { burst: 64, rate: 8 }

/** The first and the longest cool-down in milliseconds. */
const shortest = 250
const longest = 8_000
/** Milliseconds after which the next cool-down counts as the first. */
const forgiven = 10_000
/** Clients that are remembered; the one counted longest ago is dropped first. */
const remembered = 1024

interface Entry {
  /** Calls that may still be ended before it cools down. */
  readonly credit: TokenBucket
  /** When the last of them was ended. */
  at: number
  until: number
  length: number
}

/** The clients that are cooling down, by key. */
export class CoolDown {
  readonly #entries = new Map<string, Entry>()

  /** `elapsed`: milliseconds of a monotonic clock. */
  constructor(readonly elapsed: () => number = () => performance.now()) {}

  /** Counts a call that was ended because it held too much. Does nothing while the client is cooling down. */
  count(client: string): void {
    const now = this.elapsed()
    const entry = this.#entries.get(client) ?? { credit: new TokenBucket(ends, now), at: now, until: -forgiven, length: 0 }
    if (now < entry.until) return
    entry.at = now
    if (entry.credit.spend(1, now) < 0) {
      entry.length = now < entry.until + forgiven ? Math.min(longest, entry.length * 2) : shortest
      entry.until = now + entry.length
    }
    this.#entries.delete(client)
    this.#entries.set(client, entry)
    if (this.#entries.size > remembered) this.#forget(now)
  }

  /** Milliseconds until the cool-down of a client is over; 0 without one. */
  left(client: string): number {
    const entry = this.#entries.get(client)
    return entry ? Math.max(0, entry.until - this.elapsed()) : 0
  }

  #forget(now: number): void {
    for (const [client, { at }] of this.#entries) if (at + longest + forgiven < now) this.#entries.delete(client)
    for (const client of this.#entries.keys()) {
      if (this.#entries.size <= remembered) return
      this.#entries.delete(client)
    }
  }
}
