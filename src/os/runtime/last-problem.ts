import { type Clock, systemClock } from '../../cosi/clock.ts'
import { formatEntry, type LogEntry } from '../../cosi/log.ts'

/** The newest warning or error that has not been overtaken by its end: what the console shows beside the machine's stage. */
export class LastProblem {
  #entry?: LogEntry
  #noted = 0
  #told = () => {}

  constructor(readonly clock: Pick<Clock, 'elapsed'> = systemClock) {}

  /** Takes note of everything that is logged. */
  note(entry: LogEntry): void {
    const { controller } = entry.fields
    if (entry.level === 'warn' || entry.level === 'error') {
      this.#entry = entry
      this.#noted = this.clock.elapsed()
    } else if (entry.message === 'controller recovered' && controller === this.#entry?.fields.controller) this.#entry = undefined
    else return
    this.#told()
  }

  /** The problem in one line, as the log has it. */
  get text(): string | undefined {
    if (!this.#entry) return undefined
    // When it is tried again changes every time, and the problem stays the same.
    const { retry_in: _, ...fields } = this.#entry.fields
    return formatEntry({ ...this.#entry, fields })
  }

  /** Milliseconds since it was logged. */
  get age(): number | undefined {
    return this.#entry && this.clock.elapsed() - this.#noted
  }

  /** Calls back when there is another, or none any more. */
  onChange(told: () => void): void {
    this.#told = told
  }
}
