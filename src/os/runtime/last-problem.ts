import { type Clock, systemClock } from '../../cosi/clock.ts'
import { formatEntry, type LogEntry } from '../../cosi/log.ts'

/** The newest warning or error that is not resolved: the console shows it beside the machine's stage. */
export class LastProblem {
  #entry?: LogEntry | undefined
  #noted = 0
  #changed = () => {}

  constructor(readonly clock: Pick<Clock, 'elapsed'> = systemClock) {}

  /** Receives every log entry. */
  note(entry: LogEntry): void {
    const { controller } = entry.fields
    if (entry.level === 'warn' || entry.level === 'error') {
      this.#entry = entry
      this.#noted = this.clock.elapsed()
    } else if (entry.resolves && controller === this.#entry?.fields.controller) this.#entry = undefined
    else return
    this.#changed()
  }

  /** The problem in one line, in the format of the log. */
  get text(): string | undefined {
    if (!this.#entry) return undefined
    // The retry delay changes every time, while the problem stays the same.
    const { retry_in: _, ...fields } = this.#entry.fields
    return formatEntry({ ...this.#entry, fields })
  }

  /** Milliseconds since it was logged. */
  get age(): number | undefined {
    return this.#entry && this.clock.elapsed() - this.#noted
  }

  /** Calls back when the problem changes or is resolved. */
  onChange(changed: () => void): void {
    this.#changed = changed
  }
}
