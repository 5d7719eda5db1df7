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

/** Segments with these bytes in place of those at their offsets, which must not overlap. */
export function patchSegments(segments: readonly Segment[], patches: readonly { offset: number; bytes: Uint8Array }[]): Segment[] {
  const size = segments.reduce((sum, each) => sum + segmentLength(each), 0)
  const parts: Segment[] = []
  let at = 0
  for (const { offset, bytes } of patches.toSorted((a, b) => a.offset - b.offset)) {
    if (offset < at || offset + bytes.length > size)
      throw new RangeError(`${bytes.length} bytes at ${offset} overlap or lie outside of ${size}`)
    parts.push(...sliceSegments(segments, at, offset - at), { bytes })
    at = offset + bytes.length
  }
  return [...parts, ...sliceSegments(segments, at, size - at)]
}

/** Bytes of segments, in turn. Throws RangeError when a file is shorter than its segment. */
export async function* bytesOf(segments: readonly Segment[]): AsyncGenerator<Uint8Array> {
  for (const segment of segments) {
    if ('bytes' in segment) {
      yield segment.bytes
      continue
    }
    const { file, offset, length } = segment
    let left = length
    for await (const chunk of Bun.file(file)
      .slice(offset, offset + length)
      .stream()) {
      left -= chunk.length
      yield chunk
    }
    if (left !== 0) throw new RangeError(`"${file}" ends before byte ${offset + length}`)
  }
}
