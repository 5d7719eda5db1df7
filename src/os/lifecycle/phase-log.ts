/** Records the phases of all sequences since power-on and their duration. */
import { errnoOf } from '../../wire/errno.ts'
import { messageOf } from '../../wire/error-message.ts'

/** One phase of a sequence. Times in milliseconds since power-on. */
export interface PhaseRecord {
  readonly sequence: string
  readonly phase: string
  readonly tasks: readonly string[]
  readonly began: number
  took?: number
  error?: string
  /** The errno name of the system call that failed. */
  code?: string | undefined
}

/** Maximum number of records. An endlessly repeated sequence must not fill the memory. */
const most = 200

/** The phases, oldest first. */
export class PhaseLog {
  readonly #records: PhaseRecord[] = []
  readonly #listeners = new Set<() => void>()

  constructor(
    /** Milliseconds since power-on. */
    readonly now: () => number = () => performance.now(),
  ) {}

  /** All records. */
  list(): readonly Readonly<PhaseRecord>[] {
    return this.#records
  }

  /** Begins a phase. Call the returned function to end it. */
  begin(sequence: string, phase: string, tasks: readonly string[]): (error?: unknown) => void {
    const record: PhaseRecord = { sequence, phase, tasks, began: this.now() }
    if (this.#records.push(record) > most) this.#records.shift()
    this.#notify()
    return (error) => {
      record.took = this.now() - record.began
      if (error !== undefined) {
        record.error = messageOf(error)
        record.code = errnoOf(error)
      }
      this.#notify()
    }
  }

  /** Records a phase that took place between power-on and now. */
  before(sequence: string, phase: string, tasks: readonly string[]): void {
    this.#records.push({ sequence, phase, tasks, began: 0, took: this.now() })
  }

  /** Registers a callback for changes. Returns a function that removes it. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}
