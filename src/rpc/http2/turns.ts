/**
 * Limits how many bytes of one client are processed before others have their turn. A client may send thousands of requests
 * at once; processed in one go, they would delay everybody else.
 */

/** Continues with bytes that had to wait. */
export interface Deferred {
  proceed(): void
}

/** The cost of a request, relative to 1 for any other frame, and the budget of a client per turn of the event loop. */
export const requestCost = 16
const turnBudget = 16 * requestCost

/** The turns of all clients of a server. */
export class Turns {
  readonly #sated = new Set<Portion>()

  /** A client has used up its turn: the next one comes after those of all other clients. */
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

/** One client's budget for a turn. */
export class Portion {
  #spent = 0
  /** Connections with bytes left, the longest waiting first. */
  readonly #waiting = new Set<Deferred>()

  constructor(private readonly turns: Turns) {}

  /** Whether the budget is used up. */
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

  /** Starts a turn. */
  renew(): void {
    this.#spent = 0
    for (const deferred of this.#waiting) {
      if (this.over) return
      this.#waiting.delete(deferred)
      deferred.proceed()
    }
  }
}
