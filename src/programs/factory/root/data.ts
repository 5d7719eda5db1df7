/** The data of an image: blocks of its files, each content once, and the fragment blocks that small files share. */
import { open } from 'node:fs/promises'
import { SquashfsError } from './error.ts'
import type { SquashfsBase } from './read.ts'
import { contentSize, sourceOf, type TreeEntry } from './tree.ts'

/** Bit of a block's size that marks it as stored uncompressed (SQUASHFS_COMPRESSED_BIT_BLOCK). */
export const uncompressedBlock = 1 << 24

/** A block as stored: compressed, or as it is when that is not smaller. */
export interface Block {
  readonly bytes: Uint8Array
  readonly compressed: boolean
}

/** What compresses the blocks of an image. */
export interface Press {
  press(content: Uint8Array): Promise<Block>
  readonly compressor: {
    /** The format's number (squashfs_fs.h). */
    readonly id: number
    /** For metadata, of at most 8 KiB. */
    pressSmall(content: Uint8Array): Uint8Array
  }
}

/** How an image is written. */
export interface SquashfsOptions {
  /** A power of two from 4 KiB to 1 MiB. */
  blockSize: number
  press: Press
  /** Called after each block of data: bytes of content done, and of all. */
  progress?: (done: number, total: number) => void
}

/** Where the image is written: `append` adds bytes at `position`. */
export interface Output {
  readonly position: number
  append(bytes: Uint8Array): Promise<void>
}

/** Where the content of a file lies. */
export interface Content {
  size: number
  /** Where the data blocks begin. */
  start: number
  sizes: number[]
  fragment?: { index: number; offset: number }
}

/** Writes the content of files. `close` writes what is not yet written. */
export class DataWriter {
  /** By path of the file. */
  readonly contents: Map<string, Content>
  /** Records of the fragment table. */
  readonly fragments: Buffer[]
  /** Stored bytes of each file with bytes of its own; fragments are shared out by size. */
  readonly stored = new Map<string, number>()
  readonly #byHash = new Map<string, Content>()
  readonly #options: SquashfsOptions
  readonly #output: Output
  readonly #total: number
  #done = 0
  /** Small files of the fragment block that is not yet written. */
  #shared: { entry: TreeEntry; bytes: Uint8Array }[] = []
  #sharedSize = 0

  /** `total` is the size of all files, for the progress; the data of `base` lie before what is written. */
  constructor(options: SquashfsOptions, output: Output, total: number, base?: Pick<SquashfsBase, 'contents' | 'fragments'>) {
    this.contents = new Map(base?.contents)
    this.fragments = [...(base?.fragments ?? [])]
    this.#options = options
    this.#output = output
    this.#total = total
  }

  /** Writes a file, or takes the place of an equal one. */
  async write(entry: TreeEntry): Promise<void> {
    const size = contentSize(entry)
    if (size >= 2 ** 32) throw new SquashfsError(`file "${entry.path}" has ${size} bytes: at most 4 GiB fit`)
    this.contents.set(entry.path, await (size < this.#options.blockSize ? this.#small(entry, size) : this.#large(entry, size)))
  }

  /** Writes the last fragment block. */
  async close(): Promise<void> {
    if (!this.#shared.length) return
    const start = this.#output.position
    const size = await this.#put(await this.#options.press.press(Buffer.concat(this.#shared.map((each) => each.bytes))))
    const record = Buffer.alloc(16)
    record.writeBigUInt64LE(BigInt(start), 0)
    record.writeUInt32LE(size, 8)
    for (const { entry, bytes } of this.#shared)
      this.stored.set(entry.path, Math.round(((size & ~uncompressedBlock) * bytes.length) / this.#sharedSize))
    this.fragments.push(record)
    this.#shared = []
    this.#sharedSize = 0
  }

  /** A file of less than a block: a part of a fragment block. */
  async #small(entry: TreeEntry, size: number): Promise<Content> {
    const bytes = entry.bytes ?? new Uint8Array(await Bun.file(sourceOf(entry)).arrayBuffer())
    this.#done += size
    if (size === 0) return { size: 0, start: 0, sizes: [] }
    const hash = hashOf(bytes)
    const same = this.#byHash.get(hash)
    if (same) return same
    if (this.#sharedSize + size > this.#options.blockSize) await this.close()
    const content: Content = { size, start: 0, sizes: [], fragment: { index: this.fragments.length, offset: this.#sharedSize } }
    this.#shared.push({ entry, bytes })
    this.#sharedSize += size
    this.#byHash.set(hash, content)
    return content
  }

  /** A file of a block or more. Blocks are compressed some ahead of the one being written, and written in order. */
  async #large(entry: TreeEntry, size: number): Promise<Content> {
    const { blockSize, press, progress } = this.#options
    const hasher = new Bun.CryptoHasher('sha256')
    for await (const piece of pieces(entry, 1 << 20)) hasher.update(piece)
    const hash = hasher.digest('hex')
    const same = this.#byHash.get(hash)
    if (same) {
      this.#done += size
      return same
    }
    const content: Content = { size, start: this.#output.position, sizes: [] }
    const ahead = Math.max(2, navigator.hardwareConcurrency * 2)
    const waiting: { length: number; block: Promise<Block> }[] = []
    const settle = async () => {
      const next = waiting.shift()
      if (!next) return
      content.sizes.push(await this.#put(await next.block))
      this.#done += next.length
      progress?.(this.#done, this.#total)
    }
    for await (const piece of pieces(entry, blockSize)) {
      const block = press.press(piece)
      block.catch(() => {}) // awaited in order below
      waiting.push({ length: piece.length, block })
      if (waiting.length >= ahead) await settle()
    }
    while (waiting.length) await settle()
    this.stored.set(entry.path, this.#output.position - content.start)
    this.#byHash.set(hash, content)
    return content
  }

  /** Appends a block; its size as the tables of the image have it. */
  async #put(block: Block): Promise<number> {
    await this.#output.append(block.bytes)
    return block.bytes.length | (block.compressed ? 0 : uncompressedBlock)
  }
}

/** A file's bytes in pieces of at most `size`. */
async function* pieces(entry: TreeEntry, size: number): AsyncGenerator<Uint8Array> {
  if (entry.bytes) {
    for (let at = 0; at < entry.bytes.length; at += size) yield entry.bytes.subarray(at, at + size)
    return
  }
  const file = await open(sourceOf(entry), 'r')
  try {
    for (let at = 0; ; ) {
      const piece = new Uint8Array(size)
      let filled = 0
      while (filled < size) {
        const { bytesRead } = await file.read(piece, filled, size - filled, at + filled)
        if (!bytesRead) break
        filled += bytesRead
      }
      if (filled) yield piece.subarray(0, filled)
      if (filled < size) return
      at += filled
    }
  } finally {
    await file.close()
  }
}

const hashOf = (bytes: Uint8Array): string => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
