/** Durations in milliseconds. */
export interface Times {
  readonly count: number
  readonly failed: number
  readonly p50: number
  readonly p99: number
  readonly most: number
}

/** Measures the durations of consecutive operations. */
export class Series {
  readonly #taken: number[] = []
  #failed = 0

  async time(what: () => Promise<unknown>): Promise<void> {
    const began = performance.now()
    try {
      await what()
    } catch (error) {
      this.#failed++
      if (process.env.VERBOSE) console.error(String(error))
    }
    this.#taken.push(performance.now() - began)
  }

  times(): Times {
    const sorted = this.#taken.toSorted((a, b) => a - b)
    const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0
    return { count: sorted.length, failed: this.#failed, p50: at(0.5), p99: at(0.99), most: sorted.at(-1) ?? 0 }
  }
}
