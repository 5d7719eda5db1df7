/**
 * Images that exist only as a table: each layer is a list of entries whose bytes are files of the
 * root file system, so nothing is stored twice and every digest is known when the image is built.
 */

/** One entry of a layer, in tar order. */
export interface LayerEntry {
  /** Path inside the layer, without a leading slash. */
  path: string
  type: 'file' | 'dir' | 'symlink'
  mode: number
  uid?: number
  gid?: number
  /** Bytes of a file. */
  size?: number
  /** Where the bytes of a file lie in the root file system. */
  source?: string
  /** What a symlink points to. */
  target?: string
}

/** One layer: an uncompressed tar, so its digest is its diff id as well. */
export interface ImageLayer {
  digest: string
  size: number
  entries: LayerEntry[]
}

/** One image as it is served: manifest and config are the very bytes that were hashed. */
export interface ImageRecord {
  reference: string
  digest: string
  mediaType: string
  manifest: string
  config: { digest: string; size: number; text: string }
  layers: ImageLayer[]
}

/** Everything the root file system holds, as written to images.json. */
export interface ImageTable {
  images: ImageRecord[]
}

/** A run of bytes of a blob: literal, or part of a file. */
export type Segment = { bytes: Uint8Array } | { file: string; offset: number; length: number }
