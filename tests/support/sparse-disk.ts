import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'

const page = 1 << 16
const zeros = Buffer.alloc(page)
const isZero = (bytes: Uint8Array) => Buffer.compare(bytes, zeros.subarray(0, bytes.length)) === 0

/** A large disk of which only what was written takes memory. */
export class SparseDisk {
  readonly #pages = new Map<number, Uint8Array>()

  constructor(
    readonly size: number,
    readonly sectorSize = 512,
  ) {}

  read(offset: number, length: number): Uint8Array {
    if (offset < 0 || offset + length > this.size) throw new RangeError(`read at ${offset} lies outside`)
    const bytes = new Uint8Array(length)
    for (let done = 0; done < length; ) {
      const [at, within] = [Math.floor((offset + done) / page), (offset + done) % page]
      const count = Math.min(page - within, length - done)
      const held = this.#pages.get(at)
      if (held) bytes.set(held.subarray(within, within + count), done)
      done += count
    }
    return bytes
  }

  write(offset: number, bytes: Uint8Array): void {
    if (offset < 0 || offset + bytes.length > this.size) throw new RangeError(`write at ${offset} lies outside`)
    for (let done = 0; done < bytes.length; ) {
      const [at, within] = [Math.floor((offset + done) / page), (offset + done) % page]
      const count = Math.min(page - within, bytes.length - done)
      const part = bytes.subarray(done, done + count)
      done += count
      let held = this.#pages.get(at)
      if (!held && isZero(part)) continue
      if (!held) {
        held = new Uint8Array(page)
        this.#pages.set(at, held)
      }
      held.set(part, within)
    }
  }

  /** Writes it into a file that is as sparse as the disk. */
  save(path: string): void {
    const file = openSync(path, 'w')
    try {
      ftruncateSync(file, this.size)
      for (const [at, held] of this.#pages) writeSync(file, held, 0, Math.min(page, this.size - at * page), at * page)
    } finally {
      closeSync(file)
    }
  }

  /** Another disk that holds the same. */
  copy(): SparseDisk {
    const other = new SparseDisk(this.size, this.sectorSize)
    for (const [at, held] of this.#pages) other.#pages.set(at, held.slice())
    return other
  }

  /** One word for all that it holds: two disks that differ in a byte have two. */
  digest(): string {
    const hash = new Bun.CryptoHasher('sha256').update(`${this.size}`)
    for (const [at, held] of [...this.#pages].sort(([a], [b]) => a - b)) if (!isZero(held)) hash.update(`@${at}:`).update(held)
    return hash.digest('hex')
  }
}
