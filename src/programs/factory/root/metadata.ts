/** Metadata of a SquashFS: a stream cut into blocks of 8 KiB, each compressed behind a 16-bit length. */

/** Bytes of a metadata block before compression. */
export const metadataSize = 8192

/** Bit of the length that marks an uncompressed block. */
const stored = 0x8000

/** Where something begins in a metadata stream: its block's place in the compressed table, and the place in the block. */
export interface Place {
  block: number
  offset: number
}

/** A metadata stream being written, compressed by `press`. */
export class Metadata {
  readonly #press: (content: Uint8Array) => Uint8Array
  readonly #blocks: Uint8Array[] = []
  readonly #starts: number[] = []
  #open: Uint8Array = new Uint8Array(metadataSize)
  #used = 0
  #length = 0

  constructor(press: (content: Uint8Array) => Uint8Array) {
    this.#press = press
  }

  /** Where the next byte will be. */
  get place(): Place {
    return { block: this.#length, offset: this.#used }
  }

  /** Starts of the blocks in the table. */
  get starts(): readonly number[] {
    return this.#starts
  }

  /** Appends bytes and returns where they begin. */
  write(bytes: Uint8Array): Place {
    const begun = this.place
    for (let at = 0; at < bytes.length; ) {
      const take = Math.min(metadataSize - this.#used, bytes.length - at)
      this.#open.set(bytes.subarray(at, at + take), this.#used)
      this.#used += take
      at += take
      if (this.#used === metadataSize) this.#close()
    }
    return begun
  }

  /** Ends the stream and returns the table. */
  finish(): Uint8Array {
    if (this.#used) this.#close()
    return Buffer.concat(this.#blocks)
  }

  #close(): void {
    const content = this.#open.subarray(0, this.#used)
    const pressed = this.#press(content)
    const smaller = pressed.length < content.length
    const body = smaller ? pressed : content
    const block = Buffer.alloc(2 + body.length)
    block.writeUInt16LE(body.length | (smaller ? 0 : stored))
    block.set(body, 2)
    this.#blocks.push(block)
    this.#starts.push(this.#length)
    this.#length += block.length
    this.#open = new Uint8Array(metadataSize)
    this.#used = 0
  }
}

/** A number of four bytes. */
export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
