/**
 * How much of one client's bytes is looked at before others have their turn. A client may send thousands of requests at
 * once; were they all begun before anything else is read, everybody would wait for all of them.
 */

/** What goes on with bytes that had to wait. */
export interface Deferred {
  proceed(): void
}

/** What a request costs, any other frame being one, and what a client may spend in a turn of the event loop. */
export const requestCost = 16
const turnBudget = 16 * requestCost

/** The turns of all clients of a server. */
export class Turns {
  readonly #sated = new Set<Portion>()

  /** A client has had its part: it gets the next after everybody else was heard. */
  add(portion: Portion): void {
    if (this.#sated.size === 0) setImmediate(this.#next)
    this.#sated.add(portion)
  }

  readonly #next = () => {
    const portions = [...this.#sated]
    this.#sated.clear()
    for (const portion of portions) portion.renew()
  }
}

/** One client's part of a turn. */
export class Portion {
  #spent = 0
  /** Connections that have bytes left, the one that waits longest first. */
  readonly #waiting = new Set<Deferred>()

  constructor(private readonly turns: Turns) {}

  /** Whether there is nothing left of it. */
  get over(): boolean {
    return this.#spent >= turnBudget
  }

  spend(cost: number): void {
    const before = this.over
    this.#spent += cost
    if (this.over && !before) this.turns.add(this)
  }

  /** Calls back in a later turn. */
  defer(deferred: Deferred): void {
    this.#waiting.add(deferred)
  }

  /** A turn begins. */
  renew(): void {
    this.#spent = 0
    for (const deferred of this.#waiting) {
      if (this.over) return
      this.#waiting.delete(deferred)
      deferred.proceed()
    }
  }
}
