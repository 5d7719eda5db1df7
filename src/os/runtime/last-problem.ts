import { formatEntry, type LogEntry } from '../../cosi/log.ts'

/** The newest warning or error that has not been overtaken by its end: what the console shows beside the machine's stage. */
export class LastProblem {
  #entry?: LogEntry
  #told = () => {}

  /** Takes note of everything that is logged. */
  note(entry: LogEntry): void {
    const { controller } = entry.fields
    if (entry.level === 'warn' || entry.level === 'error') this.#entry = entry
    else if (entry.message === 'controller recovered' && controller === this.#entry?.fields.controller) this.#entry = undefined
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

  /** When it was logged. */
  get time(): Date | undefined {
    return this.#entry?.time
  }

  /** Calls back when there is another, or none any more. */
  onChange(told: () => void): void {
    this.#told = told
  }
}
