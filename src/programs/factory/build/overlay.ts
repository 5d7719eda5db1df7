/** A file as a disk of which the changes are kept apart, in memory. */
import type { BlockAccess } from '../../../wire/fat/block-access.ts'
import type { ReadAt } from '../../../wire/tar/read.ts'
import type { Patch } from './derived.ts'

const unit = 512
/** Bytes that may be changed. */
const limit = 16 << 20

/** A disk over another one that is not written. */
export class Overlay implements BlockAccess {
  readonly #changed = new Map<number, Uint8Array>()

  constructor(
    readonly base: ReadAt,
    readonly size: number,
  ) {}

  /** What was written. */
  get patches(): Patch[] {
    return [...this.#changed].map(([at, bytes]) => ({ offset: at * unit, bytes }))
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    this.#check(offset, length)
    const bytes = Uint8Array.from(await this.base(offset, length))
    for (let at = Math.floor(offset / unit); at * unit < offset + length; at++) {
      const changed = this.#changed.get(at)
      if (!changed) continue
      const from = Math.max(at * unit, offset)
      bytes.set(changed.subarray(from - at * unit, Math.min(unit, offset + length - at * unit)), from - offset)
    }
    return bytes
  }

  async write(offset: number, bytes: Uint8Array): Promise<void> {
    this.#check(offset, bytes.length)
    for (let at = offset; at < offset + bytes.length; ) {
      const number = Math.floor(at / unit)
      const within = at - number * unit
      const part = bytes.subarray(at - offset, at - offset + unit - within)
      const sector = this.#changed.get(number) ?? Uint8Array.from(await this.base(number * unit, Math.min(unit, this.size - number * unit)))
      if (!this.#changed.has(number) && (this.#changed.size + 1) * unit > limit)
        throw new RangeError(`more than ${limit} bytes are changed`)
      sector.set(part, within)
      this.#changed.set(number, sector)
      at += part.length
    }
  }

  async flush(): Promise<void> {} // it is read when it is whole

  #check(offset: number, length: number): void {
    if (offset < 0 || length < 0 || offset + length > this.size)
      throw new RangeError(`${length} bytes at ${offset} lie outside of ${this.size}`)
  }
}

/** A stretch of a disk. */
export const stretchOf = (disk: BlockAccess, start: number, size: number): BlockAccess => ({
  size,
  read: (offset, length) => disk.read(start + offset, length),
  write: (offset, bytes) => disk.write(start + offset, bytes),
  flush: () => disk.flush(),
})
