/**
 * A layer is an uncompressed tar whose file contents are elsewhere. Nothing is materialized: a layer is a list of segments,
 * that is, literal headers and padding between ranges of files. It is hashed when it is built and streamed when it is pulled.
 */

import { tarPadding } from '../wire/tar/format.ts'
import { tarEnd, tarHeader } from '../wire/tar/write.ts'
import type { LayerEntry, Segment } from './image.ts'
import { segmentLength } from './segments.ts'

/** The media type of a layer; the digest of an uncompressed layer is its diff id. */
export const layerMediaType = 'application/vnd.oci.image.layer.v1.tar'

/** The segments of a layer with these entries, in their order. */
export function layerSegments(entries: readonly LayerEntry[]): Segment[] {
  const segments: Segment[] = []
  let literal: Uint8Array[] = []
  const flush = () => {
    if (literal.length) segments.push({ bytes: Buffer.concat(literal) })
    literal = []
  }
  for (const entry of entries) {
    const { path, type, mode, uid, gid, size, target } = entry
    literal.push(tarHeader({ path, type: type === 'dir' ? 'directory' : type, mode, uid, gid, size, target }))
    if (entry.type !== 'file' || !entry.size) continue
    if (!entry.source) throw new TypeError(`layer entry "${entry.path}": a file needs a source`)
    flush()
    segments.push({ file: entry.source, offset: 0, length: entry.size })
    const padding = tarPadding(entry.size)
    if (padding.length > 0) literal.push(padding)
  }
  literal.push(tarEnd)
  flush()
  return segments
}

/** The size in bytes of a layer with these entries. */
export function layerSize(entries: readonly LayerEntry[]): number {
  return layerSegments(entries).reduce((total, segment) => total + segmentLength(segment), 0)
}

/** The directories above `paths`, which a layer must hold before them: outermost first, owned by root, readable by all. */
export function parentEntries(paths: readonly string[]): LayerEntry[] {
  const parents = new Set<string>()
  for (const path of paths) {
    const parts = path.split('/').slice(0, -1)
    for (let depth = 1; depth <= parts.length; depth++) parents.add(parts.slice(0, depth).join('/'))
  }
  return [...parents].sort().map((path) => ({ path, type: 'dir', mode: 0o755 }))
}
