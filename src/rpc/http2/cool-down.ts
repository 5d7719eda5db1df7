/**
 * Clients whose calls were ended again and again because they held too much make no calls for a moment: ended calls that come
 * back at once would cost others as much as before. The moment is longer each time, and forgotten when the client stays away.
 */

/** Calls of a client that may be ended at once, and each second, before it has to rest. A stalled viewer of many logs is within. */
const burst = 64
const perSecond = 8

/** Milliseconds for the first time, and at most. */
const shortest = 250
const longest = 8_000
/** Milliseconds without another time after which the next counts as the first. */
const forgiven = 10_000
/** Clients that are remembered; the one that was counted longest ago is forgotten first. */
const remembered = 1024

interface Entry {
  /** Calls that may still be ended before it rests, as of `at`. */
  credit: number
  at: number
  until: number
  length: number
}

/** Which clients rest, by their keys. */
export class CoolDown {
  readonly #entries = new Map<string, Entry>()

  /** `elapsed`: milliseconds by a clock that nobody sets. */
  constructor(readonly elapsed: () => number = () => performance.now()) {}

  /** A call of a client was ended because it held too much. One that rests already is not counted. */
  count(client: string): void {
    const now = this.elapsed()
    const known = this.#entries.get(client) ?? { credit: burst, at: now, until: -forgiven, length: 0 }
    if (now < known.until) return
    const credit = Math.min(burst, known.credit + ((now - known.at) / 1000) * perSecond) - 1
    const entry = { ...known, credit, at: now }
    if (credit < 0) {
      entry.length = now < known.until + forgiven ? Math.min(longest, known.length * 2) : shortest
      entry.until = now + entry.length
    }
    this.#entries.delete(client)
    this.#entries.set(client, entry)
    if (this.#entries.size > remembered) this.#forget(now)
  }

  /** Milliseconds a client still rests; 0 when it does not. */
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
