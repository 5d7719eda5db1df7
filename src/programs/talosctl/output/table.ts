/** Cells in columns, each as wide as its widest cell and three spaces; the last cell of a row is not padded. */
export function table(rows: readonly Row[], gap = 3): string {
  const live = new LiveTable(gap)
  live.fit(rows)
  return rows.map((row) => live.line(row)).join('')
}

/** The cells of one line. */
export type Row = readonly unknown[]

/** A table whose rows come one after the other: columns grow when they must and never shrink. */
export class LiveTable {
  readonly #widths: number[] = []
  constructor(readonly gap = 3) {}

  /** Widens the columns for rows that are about to be printed. */
  fit(rows: readonly Row[]): void {
    for (const row of rows) {
      for (const [index, cell] of row.slice(0, -1).entries()) {
        this.#widths[index] = Math.max(this.#widths[index] ?? 0, width(text(cell)))
      }
    }
  }

  /** One row as a line. */
  line(row: Row): string {
    this.fit([row])
    const last = row.length - 1
    const cells = row.map((cell, index) => (index === last ? text(cell) : this.#pad(text(cell), index)))
    return `${cells.join('')}\n`
  }

  #pad(cell: string, index: number): string {
    return cell + ' '.repeat((this.#widths[index] ?? 0) - width(cell) + this.gap)
  }
}

function text(cell: unknown): string {
  return cell === undefined || cell === null ? '' : String(cell)
}

function width(cell: string): number {
  let count = 0
  for (const _ of cell) count++
  return count
}
