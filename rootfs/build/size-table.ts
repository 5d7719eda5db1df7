import { contentSize, type Tree } from '../../src/programs/factory/root/tree.ts'
import { formatSize } from './progress.ts'

/** How much of an image one part is. */
export interface SizeRow {
  part: string
  files: number
  /** Bytes of its files. */
  size: number
  /** Bytes they take in the image. */
  stored: number
}

/** The parts of a tree by stored size. */
export function sizeRows(tree: Tree, stored: ReadonlyMap<string, number>): SizeRow[] {
  const parts = new Map<string, SizeRow>()
  for (const entry of tree.entries()) {
    if (entry.type !== 'file' || entry.linkTo) continue
    const sum = parts.get(entry.part) ?? { part: entry.part, files: 0, size: 0, stored: 0 }
    sum.files++
    sum.size += contentSize(entry)
    sum.stored += stored.get(entry.path) ?? 0
    parts.set(entry.part, sum)
  }
  return [...parts.values()].sort((a, b) => b.stored - a.stored)
}

/** A table of the parts by stored size, with the size of their files before compression. */
export function sizeTable(rows: readonly SizeRow[]): string {
  const lines = rows.map(({ part, files, size, stored }) => [part, String(files), formatSize(size), formatSize(stored)])
  return table([['PART', 'FILES', 'SIZE', 'STORED'], ...lines])
}

/** Rows of text in columns, all but the first to the right. */
export function table(rows: readonly (readonly string[])[]): string {
  const width = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0))
  return rows.map((row) => row.map((cell, n) => (n ? cell.padStart(width(n)) : cell.padEnd(width(n)))).join('  ')).join('\n')
}
