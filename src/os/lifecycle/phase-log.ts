/** What the sequences of this start have done so far, and when: kept for those who ask what took how long. */

/** One phase of a sequence. Times in milliseconds since power-on. */
export interface PhaseRecord {
  readonly sequence: string
  readonly phase: string
  readonly tasks: readonly string[]
  readonly began: number
  took?: number
  error?: string
}

/** More than any start has; a machine that tries something for ever does not fill its memory with it. */
const most = 200

/** The phases, oldest first. */
export class PhaseLog {
  readonly #records: PhaseRecord[] = []
  readonly #listeners = new Set<() => void>()

  constructor(
    /** Milliseconds since power-on. */
    readonly now: () => number = () => performance.now(),
  ) {}

  /** All that is remembered. */
  list(): readonly Readonly<PhaseRecord>[] {
    return this.#records
  }

  /** A phase begins; what is given back ends it. */
  begin(sequence: string, phase: string, tasks: readonly string[]): (error?: string) => void {
    const record: PhaseRecord = { sequence, phase, tasks, began: this.now() }
    if (this.#records.push(record) > most) this.#records.shift()
    this.#tell()
    return (error) => {
      record.took = this.now() - record.began
      if (error !== undefined) record.error = error
      this.#tell()
    }
  }

  /** Notes what had happened by now, since power-on. */
  before(sequence: string, phase: string, tasks: readonly string[]): void {
    this.#records.push({ sequence, phase, tasks, began: 0, took: this.now() })
  }

  /** Calls back on every change. Returns how to stop. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}
