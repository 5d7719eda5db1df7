import { LogRing } from './log-ring.ts'

/** The node's logs by name: one per service, and those of init's own components. */
export class Logs {
  readonly #rings = new Map<string, LogRing>()
  readonly #listeners = new Set<() => void>()

  /** The log of that name, created on first use. */
  open(id: string): LogRing {
    let ring = this.#rings.get(id)
    if (!ring) {
      ring = new LogRing(undefined, () => {
        for (const listener of this.#listeners) listener()
      })
      this.#rings.set(id, ring)
    }
    return ring
  }

  /** The log of that name, if there is one. */
  get(id: string): LogRing | undefined {
    return this.#rings.get(id)
  }

  /** All logs with their names. */
  entries(): Iterable<readonly [string, LogRing]> {
    return this.#rings.entries()
  }

  /** Calls back after each write to any log, until the returned function is called. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** All names, sorted. */
  ids(): string[] {
    return [...this.#rings.keys()].sort()
  }
}
