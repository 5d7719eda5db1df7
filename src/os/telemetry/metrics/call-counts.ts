/** Counts per method: calls, outcomes and durations, in buckets as Prometheus expects of histograms. */
import type { AdmittedCall, CallObserver } from '../../../rpc/server/call.ts'
import type { StatusName } from '../../../rpc/status.ts'

/** Upper bounds of the buckets, in seconds. */
export const bounds: readonly number[] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** The counts of one method. */
export interface MethodCounts {
  readonly outcomes: Map<string, number>
  /** Calls in each bucket, and in one more those beyond the last bound. */
  readonly buckets: number[]
  seconds: number
  running: number
}

/** The counts of all methods that were called. */
export class CallCounts implements CallObserver {
  readonly methods = new Map<string, MethodCounts>()

  began({ method }: AdmittedCall): void {
    this.#of(method.path).running++
  }

  ended({ method }: AdmittedCall, status: StatusName | 'OK', milliseconds: number): void {
    const counts = this.#of(method.path)
    const seconds = milliseconds / 1000
    counts.running--
    counts.seconds += seconds
    counts.outcomes.set(status, (counts.outcomes.get(status) ?? 0) + 1)
    const within = bounds.findIndex((bound) => seconds <= bound)
    const bucket = within < 0 ? bounds.length : within
    counts.buckets[bucket] = (counts.buckets[bucket] ?? 0) + 1
  }

  #of(path: string): MethodCounts {
    let counts = this.methods.get(path)
    if (!counts) {
      counts = { outcomes: new Map(), buckets: new Array<number>(bounds.length + 1).fill(0), seconds: 0, running: 0 }
      this.methods.set(path, counts)
    }
    return counts
  }
}
