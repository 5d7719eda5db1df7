/** Cells in columns, each as wide as its widest cell and three spaces; the last cell of a row is not padded. */
export function table(rows: readonly (readonly unknown[])[], gap = 3): string {
  const cells = rows.map((row) => row.map((cell) => (cell === undefined || cell === null ? '' : String(cell))))
  const widths: number[] = []
  for (const row of cells) {
    for (const [index, cell] of row.slice(0, -1).entries()) widths[index] = Math.max(widths[index] ?? 0, width(cell))
  }
  const line = (row: string[]) =>
    row.map((cell, index) => (index === row.length - 1 ? cell : cell + ' '.repeat((widths[index] ?? 0) - width(cell) + gap))).join('')
  return cells.map((row) => `${line(row)}\n`).join('')
}

function width(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}
