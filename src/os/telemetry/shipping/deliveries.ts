import type { Clock } from '../../../cosi/clock.ts'
import type { Logger } from '../../../cosi/log.ts'

/** Milliseconds in which a machine that stops sends what waits for its receivers. */
const drainLimit = 5000
/** Milliseconds without any progress after which nothing more is expected: a receiver that reads acknowledges sooner. */
const idleLimit = 2000
const interval = 100

/** The destinations of one source, as far as they are of interest to a machine that stops. */
export interface Waiting {
  /** What each receiver that is connected does not have yet. */
  waiting(): readonly number[]
  /** Sends now what waits for more. */
  flush?(): void
}

/** Everything that a machine sends to receivers of logs and events. */
export class Deliveries {
  readonly #sources: Waiting[] = []
  readonly #clock: Pick<Clock, 'elapsed' | 'deadline' | 'sleep'>
  readonly #log: Logger

  constructor(clock: Pick<Clock, 'elapsed' | 'deadline' | 'sleep'>, log: Logger) {
    this.#clock = clock
    this.#log = log
  }

  add(source: Waiting): void {
    this.#sources.push(source)
  }

  /**
   * Waits until every receiver that is connected has what was logged, at most 5 seconds. One that is away, or that takes nothing,
   * does not hold the machine up.
   */
  async drain(): Promise<void> {
    const end = this.#clock.deadline(drainLimit)
    const began = this.#clock.elapsed()
    for (const source of this.#sources) source.flush?.()
    let progress = { state: '', at: began }
    for (;;) {
      const waiting = this.#sources.flatMap((source) => source.waiting()).filter((amount) => amount > 0)
      const now = this.#clock.elapsed()
      if (waiting.length === 0) {
        if (now > began) this.#log.info('logs and events were delivered before the end', { duration: Math.round(now - began) })
        return
      }
      const state = waiting.join()
      if (state !== progress.state) progress = { state, at: now }
      if (end.over || now - progress.at >= idleLimit) {
        this.#log.warn('logs or events were not delivered before the end', { receivers: waiting.length })
        return
      }
      await this.#clock.sleep(interval)
    }
  }
}
