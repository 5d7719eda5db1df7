import type { Segment } from './image.ts'

/** The length of a segment in bytes. */
export function segmentLength(segment: Segment): number {
  return 'bytes' in segment ? segment.bytes.length : segment.length
}

/** The segments for `length` bytes of a blob from `start`. */
export function sliceSegments(segments: readonly Segment[], start: number, length: number): Segment[] {
  const out: Segment[] = []
  let skip = start
  let left = length
  for (const segment of segments) {
    if (left <= 0) break
    const size = segmentLength(segment)
    if (skip >= size) {
      skip -= size
      continue
    }
    const take = Math.min(size - skip, left)
    out.push(
      'bytes' in segment
        ? { bytes: segment.bytes.subarray(skip, skip + take) }
        : { file: segment.file, offset: segment.offset + skip, length: take },
    )
    left -= take
    skip = 0
  }
  return out
}
