/**
 * Images that exist only as a table: each layer is a list of entries whose contents are files of the root file system, so
 * nothing is stored twice and every digest is known when the image is built.
 */

/** One entry of a layer, in tar order. */
export interface LayerEntry {
  /** Path inside the layer, without a leading slash. */
  path: string
  type: 'file' | 'dir' | 'symlink'
  mode: number
  uid?: number
  gid?: number
  /** Size of a file in bytes. */
  size?: number
  /** Path of the file's contents in the root file system. */
  source?: string
  /** Target of a symlink. */
  target?: string | undefined
}

/** One layer: an uncompressed tar, so its digest is also its diff id. */
export interface ImageLayer {
  digest: string
  size: number
  entries: LayerEntry[]
}

/** An image as it is served: manifest and config are byte for byte what was hashed. */
export interface ImageRecord {
  reference: string
  digest: string
  mediaType: string
  manifest: string
  config: { digest: string; size: number; text: string }
  layers: ImageLayer[]
}

/** All images in the root file system, as written to images.json. */
export interface ImageTable {
  images: ImageRecord[]
}

/** A range of bytes of a blob: literal, or part of a file. */
export type Segment = { bytes: Uint8Array } | { file: string; offset: number; length: number }
