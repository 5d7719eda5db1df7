/** What takes how much of the image. */
import { formatSize } from './progress.ts'
import type { Tree } from './tree.ts'

/** A table of the parts by stored size, with the size of their files before compression. */
export function sizeTable(tree: Tree, stored: ReadonlyMap<string, number>): string {
  const parts = new Map<string, { files: number; size: number; stored: number }>()
  for (const entry of tree.entries()) {
    if (entry.type !== 'file' || entry.linkTo) continue
    const sum = parts.get(entry.part) ?? { files: 0, size: 0, stored: 0 }
    sum.files++
    sum.size += entry.bytes?.length ?? Bun.file(entry.source!).size
    sum.stored += stored.get(entry.path) ?? 0
    parts.set(entry.part, sum)
  }
  const rows = [...parts].sort(([, a], [, b]) => b.stored - a.stored)
  const lines = rows.map(([name, sum]) => [name, String(sum.files), formatSize(sum.size), formatSize(sum.stored)])
  const all = [['PART', 'FILES', 'SIZE', 'STORED'], ...lines]
  const widths = [0, 1, 2, 3].map((column) => Math.max(...all.map((row) => row[column]!.length)))
  return all.map((row) => row.map((cell, n) => (n ? cell.padStart(widths[n]!) : cell.padEnd(widths[n]!))).join('  ')).join('\n')
}
