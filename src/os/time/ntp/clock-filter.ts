/**
 * What one server has said lately, and the best of it (RFC 5905 section 10): the answer that was quickest there and back
 * has the least to hide. Seconds throughout; moments are of a clock that never jumps.
 */

/** One answer. */
export interface Sample {
  readonly offset: number
  readonly delay: number
  readonly at: number
}

/** What a server's samples come to. */
export interface Estimate {
  readonly offset: number
  readonly delay: number
  /** How far off the offset may be for its age. */
  readonly dispersion: number
  readonly jitter: number
  readonly at: number
}

const stages = 8
/** PHI: how much a clock left alone may drift, seconds a second. */
export const drift = 15e-6
/** What the clocks of this world can tell apart, at best. */
const precision = 1e-6

/** The last samples of one server. */
export class ClockFilter {
  #samples: Sample[] = []

  add(sample: Sample): void {
    this.#samples = [sample, ...this.#samples].slice(0, stages)
  }

  /** Forgets everything: our clock was set, and what was measured against it before means nothing. */
  clear(): void {
    this.#samples = []
  }

  /** Our clock was led by so much. */
  shift(offset: number): void {
    this.#samples = this.#samples.map((sample) => ({ ...sample, offset: sample.offset - offset }))
  }

  estimate(now: number): Estimate | undefined {
    const dispersionOf = ({ at }: Sample) => precision + drift * Math.max(0, now - at)
    // The older a quick answer, the less it says: its age counts against it.
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
