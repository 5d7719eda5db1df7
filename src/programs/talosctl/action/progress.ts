import type { Io } from '../io.ts'

/** How progress is shown: redrawn on a terminal, a line for every change elsewhere, or not at all. */
export type ProgressMode = 'auto' | 'plain' | 'none'

/** What each of several nodes is doing, live on stderr. */
export class NodeProgress {
  readonly #states = new Map<string, string>()
  readonly #live: boolean
  #drawn = 0

  constructor(
    readonly io: Io,
    readonly mode: ProgressMode,
  ) {
    this.#live = mode === 'auto' && io.stderr.colors
  }

  /** Shows the current state of a node. */
  update(node: string, state: string): void {
    if (this.mode === 'none' || this.#states.get(node) === state) return
    this.#states.set(node, state)
    if (!this.#live) {
      this.io.stderr.write(`${node}: ${state}\n`)
      return
    }
    const up = this.#drawn > 0 ? `\u001b[${this.#drawn}A` : ''
    const width = this.io.stderr.columns
    const lines = [...this.#states].map(([name, text]) => `\u001b[K${`${name}: ${text}`.slice(0, width - 1)}\n`)
    this.io.stderr.write(up + lines.join(''))
    this.#drawn = lines.length
  }
}
