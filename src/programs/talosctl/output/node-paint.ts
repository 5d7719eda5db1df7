import { type Output, paint } from '../io.ts'

const palette = [6, 3, 2, 5, 4, 1]

/** Gives each node's name a colour of its own where several are interleaved. */
export class NodePaint {
  readonly #colors = new Map<string, number>()
  constructor(
    readonly output: Output,
    readonly several: boolean,
  ) {}

  paint(node: string): string {
    if (!this.several) return node
    const color = this.#colors.get(node) ?? palette[this.#colors.size % palette.length] ?? 6
    this.#colors.set(node, color)
    return paint(this.output, color, node)
  }
}
