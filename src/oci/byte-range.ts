/** A stretch of a blob: its first and last byte. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/**
 * Parses the header "Range" for a blob of `size` bytes (RFC 9110 §14.1.2), one range; several ranges or another unit are ignored, as
 * the RFC allows.
 */
export function parseRange(header: string, size: number): ByteRange | 'unsatisfiable' | undefined {
  const [, first, last] = header.match(/^bytes=(\d{0,15})-(\d{0,15})$/) ?? []
  if (first === undefined || last === undefined || (!first && !last)) return undefined
  if (!first) {
    const suffix = Math.min(Number(last), size)
    return suffix === 0 ? 'unsatisfiable' : { start: size - suffix, end: size - 1 }
  }
  const start = Number(first)
  const end = last ? Math.min(Number(last), size - 1) : size - 1
  if (start >= size || end < start) return 'unsatisfiable'
  return { start, end }
}
