import type { Io } from '../io.ts'

/** Progress output of a long command: one line per step, rewritten in place on a terminal, and the duration of each phase. */
export class Progress {
  readonly phases: { name: string; milliseconds: number }[] = []
  readonly #started: number
  #live = ''

  constructor(readonly io: Io) {
    this.#started = io.now().getTime()
  }

  /** Runs a phase; its name is shown while it runs and its duration when it is over. */
  async phase<T>(name: string, run: (detail: (text: string) => void) => Promise<T> | T): Promise<T> {
    const started = this.io.now().getTime()
    this.#show(`${name} …`)
    let detail = ''
    try {
      const result = await run((text) => {
        detail = text
        this.#show(`${name}: ${text} …`)
      })
      const milliseconds = this.io.now().getTime() - started
      this.phases.push({ name, milliseconds })
      this.line(`${name}: OK (${seconds(milliseconds)})`)
      return result
    } catch (error) {
      this.line(`${name}${detail ? `: ${detail}` : ''}: failed after ${seconds(this.io.now().getTime() - started)}`)
      throw error
    }
  }

  /** Writes a line that stays. */
  line(text: string): void {
    this.#clear()
    this.io.stderr.write(`${text}\n`)
  }

  /** The durations of all phases in one line. */
  summary(): string {
    const total = this.io.now().getTime() - this.#started
    return `${this.phases.map(({ name, milliseconds }) => `${name} ${seconds(milliseconds)}`).join(', ')}; ${seconds(total)} in all`
  }

  #show(text: string): void {
    if (!this.io.stderr.isTTY) return
    this.#clear()
    this.#live = text.slice(0, Math.max(10, this.io.stderr.columns - 1))
    this.io.stderr.write(this.#live)
  }

  #clear(): void {
    if (this.#live) this.io.stderr.write('\r\u001b[2K')
    this.#live = ''
  }
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)}s`
}
