import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'

const page = 1 << 16
const zeros = Buffer.alloc(page)
const isZero = (bytes: Uint8Array) => Buffer.compare(bytes, zeros.subarray(0, bytes.length)) === 0

/** Digests of pages that did not change since; pages are shared between copies, so most are hashed once. */
const digests = new WeakMap<Uint8Array, string>()

function digestOf(bytes: Uint8Array): string {
  let digest = digests.get(bytes)
  if (digest === undefined) {
    digest = isZero(bytes) ? '' : new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
    digests.set(bytes, digest)
  }
  return digest
}

/** A large disk of which only what was written takes memory. */
export class SparseDisk {
  readonly #pages = new Map<number, Uint8Array>()
  /** The pages that no copy shares; all others are copied before they are written. */
  #own = new Set<number>()

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
      if (!this.#pages.has(at) && isZero(part)) continue
      const held = this.#ownPage(at)
      held.set(part, within)
      digests.delete(held)
    }
  }

  #ownPage(at: number): Uint8Array {
    const held = this.#pages.get(at)
    if (held && this.#own.has(at)) return held
    const own = held?.slice() ?? new Uint8Array(page)
    this.#pages.set(at, own)
    this.#own.add(at)
    return own
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

  /** Another disk with the same contents. */
  copy(): SparseDisk {
    const other = new SparseDisk(this.size, this.sectorSize)
    for (const [at, held] of this.#pages) other.#pages.set(at, held)
    this.#own = new Set()
    return other
  }

  /** A digest of size and contents. */
  digest(): string {
    const hash = new Bun.CryptoHasher('sha256').update(`${this.size}`)
    for (const [at, held] of [...this.#pages].sort(([a], [b]) => a - b)) {
      const digest = digestOf(held)
      if (digest) hash.update(`@${at}:${digest}`)
    }
    return hash.digest('hex')
  }
}
