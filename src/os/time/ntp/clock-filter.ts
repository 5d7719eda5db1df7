/**
 * The latest samples of one server, and the best of them (RFC 5905 section 10): the one with the shortest round trip has the
 * smallest error. All values are in seconds; times are of a monotonic clock.
 */

/** One sample. */
export interface Sample {
  readonly offset: number
  readonly delay: number
  readonly at: number
}

/** The estimate from a server's samples. */
export interface Estimate {
  readonly offset: number
  readonly delay: number
  /** The largest error of the offset, which grows with its age. */
  readonly dispersion: number
  readonly jitter: number
  readonly at: number
}

const stages = 8
/** PHI: how much a free-running clock may drift, in seconds per second. */
export const drift = 15e-6
/** The best precision of a clock. */
const precision = 1e-6

/** The last samples of one server. */
export class ClockFilter {
  #samples: Sample[] = []

  add(sample: Sample): void {
    this.#samples = [sample, ...this.#samples].slice(0, stages)
  }

  /** Forgets everything: the local clock was stepped, which invalidates earlier measurements. */
  clear(): void {
    this.#samples = []
  }

  /** The local clock was slewed by this much. */
  shift(offset: number): void {
    this.#samples = this.#samples.map((sample) => ({ ...sample, offset: sample.offset - offset }))
  }

  estimate(now: number): Estimate | undefined {
    const dispersionOf = ({ at }: Sample) => precision + drift * Math.max(0, now - at)
    // The age of a sample counts against its short delay.
    const distance = (sample: Sample) => sample.delay / 2 + dispersionOf(sample)
    const [best, ...rest] = this.#samples.toSorted((a, b) => distance(a) - distance(b))
    if (!best) return undefined
    const squares = rest.reduce((sum, { offset }) => sum + (offset - best.offset) ** 2, 0)
    return {
      offset: best.offset,
      delay: best.delay,
      dispersion: dispersionOf(best),
      jitter: Math.max(precision, rest.length === 0 ? 0 : Math.sqrt(squares / rest.length)),
      at: best.at,
    }
  }
}
