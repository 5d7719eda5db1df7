/** The hash at the end of an etcd snapshot: SHA-256 of the database before it, whose length is a multiple of 512 bytes. */
import { createHash } from 'node:crypto'

const trailer = 32
const page = 512

/** What the hash of a snapshot shows: it is right, the file has none (it is cut, or a copied database), or it is another's. */
export type SnapshotHashResult =
  | { readonly state: 'intact'; readonly bytes: number }
  | { readonly state: 'missing'; readonly bytes: number }
  | { readonly state: 'different'; readonly bytes: number; readonly computed: string; readonly expected: string }

/** Computes the hash of a snapshot while it passes in chunks, and compares it with the one at its end. */
export class SnapshotHash {
  readonly #hash = createHash('sha256')
  #held = Buffer.alloc(0)
  #bytes = 0

  update(chunk: Uint8Array): void {
    this.#bytes += chunk.length
    const seen = Buffer.concat([this.#held, chunk])
    const keep = Math.max(0, seen.length - trailer)
    this.#hash.update(seen.subarray(0, keep))
    this.#held = Buffer.from(seen.subarray(keep))
  }

  /** Called once, after the last chunk. */
  finish(): SnapshotHashResult {
    const bytes = this.#bytes
    if (bytes % page !== trailer) return { state: 'missing', bytes }
    const computed = this.#hash.digest('hex')
    const expected = this.#held.toString('hex')
    return computed === expected ? { state: 'intact', bytes } : { state: 'different', bytes, computed, expected }
  }
}
