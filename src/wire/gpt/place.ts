/** Finds free space for partitions. */
import type { GptTable } from './table.ts'

const alignment = 1 << 20

/** A range of free sectors, both ends inclusive, its start aligned to a mebibyte. */
export interface Gap {
  first: number
  last: number
}

/** The free ranges, in order. */
export function gaps({ sectorSize, sectors, entries, firstUsable, partitions }: GptTable): Gap[] {
  const step = alignment / sectorSize
  const aligned = (sector: number) => Math.ceil(sector / step) * step
  // The end as it will be written: the backup is always at the end of the disk.
  const end = sectors - 2 - Math.ceil((entries * 128) / sectorSize)
  const found: Gap[] = []
  let first = aligned(firstUsable)
  for (const partition of [...partitions].sort((a, b) => a.first - b.first)) {
    if (partition.first > first) found.push({ first, last: partition.first - 1 })
    first = Math.max(first, aligned(partition.last + 1))
  }
  if (first <= end) found.push({ first, last: end })
  // Whole steps, so that the next range is aligned too.
  return found
    .map((gap) => ({ first: gap.first, last: gap.first + Math.floor((gap.last + 1 - gap.first) / step) * step - 1 }))
    .filter((gap) => gap.last >= gap.first)
}

/** The largest free range. */
export function widestGap(table: GptTable): Gap | undefined {
  return gaps(table).reduce<Gap | undefined>(
    (best, gap) => (best && best.last - best.first >= gap.last - gap.first ? best : gap),
    undefined,
  )
}

/** Size of a range in bytes. */
export const gapSize = (gap: Gap, sectorSize: number): number => (gap.last + 1 - gap.first) * sectorSize

/** The lowest unused partition number. */
export function freeIndex({ partitions, entries }: GptTable): number | undefined {
  const taken = new Set(partitions.map(({ index }) => index))
  for (let index = 1; index <= entries; index++) if (!taken.has(index)) return index
  return undefined
}

/** The last sector a partition can grow to: before the next one, or at the end of the disk. */
export function growthLimit(table: GptTable, index: number): number {
  const partition = table.partitions.find((each) => each.index === index)
  if (!partition) return 0
  const rest = { ...table, partitions: table.partitions.filter((each) => each.index !== index) }
  return Math.max(
    partition.last,
    ...gaps(rest)
      .filter(({ first, last }) => first <= partition.first && last >= partition.last)
      .map(({ last }) => last),
  )
}
