import type { Clock } from '../../../cosi/clock.ts'

/** Milliseconds for which a loss is worth an operator's attention. */
const lossShown = 60 * 60_000

/** What became of the messages of one destination. */
export class DeliveryCounts {
  sent = 0
  /** Records that were lost before they could be sent, of sources that number them. */
  dropped = 0
  /** Bytes of logs that were lost before they could be sent. */
  droppedBytes = 0
  lastError = ''
  isConnected = false
  #failing = false
  #lostAt = Number.NEGATIVE_INFINITY
  readonly #clock: Pick<Clock, 'elapsed'>

  constructor(
    readonly destination: string,
    clock: Pick<Clock, 'elapsed'>,
  ) {
    this.#clock = clock
  }

  /** Whether something was lost in the last hour. */
  get isLosing(): boolean {
    return this.#clock.elapsed() - this.#lostAt < lossShown
  }

  connected(): void {
    this.isConnected = true
  }

  /** Records a failure; true for the first in a row. */
  failed(error: string): boolean {
    const first = !this.#failing
    this.#failing = true
    this.isConnected = false
    this.lastError = error
    return first
  }

  deliver(messages: number): void {
    this.sent += messages
  }

  /** Whether a failure is over. */
  recovered(): boolean {
    const over = this.#failing
    this.#failing = false
    if (over) {
      this.lastError = ''
    }
    return over
  }

  drop(count: number, unit: 'bytes' | 'records'): void {
    this.#lostAt = this.#clock.elapsed()
    if (unit === 'bytes') this.droppedBytes += count
    else this.dropped += count
  }
}
