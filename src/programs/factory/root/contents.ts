/** The contents of single files of a SquashFS 4.0 image. */
import type { ReadAt } from '../../../wire/tar/read.ts'
import { type Content, uncompressedBlock } from './data.ts'
import { SquashfsError } from './error.ts'
import type { SquashfsBase, Unpack } from './read.ts'

const contentLimit = 64 << 20
const damaged = (path: string) => new SquashfsError(`the root file system of the release: the content of "${path}" is damaged`)

/** Reads files of an image. Those that share a block of fragments are best read one after another. */
export class ContentReader {
  readonly #read: ReadAt
  readonly #base: SquashfsBase
  readonly #unpack: Unpack
  #fragment: { index: number; bytes: Uint8Array } | undefined

  constructor(read: ReadAt, base: SquashfsBase, unpack: Unpack) {
    this.#read = read
    this.#base = base
    this.#unpack = unpack
  }

  /** The content of a file. Throws SquashfsError. */
  async content(path: string): Promise<Buffer> {
    const content = this.#base.contents.get(path)
    if (!content || content.size > contentLimit) throw damaged(path)
    const { size, fragment } = content
    const parts = await this.#blocks(path, content)
    if (fragment) {
      const { blockSize } = this.#base
      const shared = await this.#shared(path, fragment.index)
      parts.push(shared.subarray(fragment.offset, fragment.offset + (size % blockSize)))
    }
    const bytes = Buffer.concat(parts)
    if (bytes.length !== size) throw damaged(path)
    return bytes
  }

  /** The blocks that a file has for itself, unpacked together. */
  async #blocks(path: string, { start, sizes }: Content): Promise<Uint8Array[]> {
    const stored: Uint8Array[] = []
    let at = start
    for (const size of sizes) {
      stored.push(await this.#stored(path, at, size))
      at += size & ~uncompressedBlock
    }
    const packed = stored.filter((_, index) => ((sizes[index] ?? 0) & uncompressedBlock) === 0)
    const unpacked = packed.length > 0 ? await this.#unpack(packed) : new Uint8Array(0)
    let done = 0
    return stored.map((block, index) => {
      if (((sizes[index] ?? 0) & uncompressedBlock) !== 0) return block
      const part = unpacked.subarray(done, done + this.#base.blockSize)
      done += part.length
      return part
    })
  }

  async #shared(path: string, index: number): Promise<Uint8Array> {
    if (this.#fragment?.index === index) return this.#fragment.bytes
    const record = this.#base.fragments[index]
    if (!record) throw damaged(path)
    const size = record.readUInt32LE(8)
    const stored = await this.#stored(path, Number(record.readBigUInt64LE(0)), size)
    const bytes = (size & uncompressedBlock) !== 0 ? stored : await this.#unpack([stored])
    this.#fragment = { index, bytes }
    return bytes
  }

  async #stored(path: string, offset: number, size: number): Promise<Uint8Array> {
    const length = size & ~uncompressedBlock
    const { blockSize, dataEnd } = this.#base
    if (length === 0 || length > blockSize || offset + length > dataEnd) throw damaged(path)
    return this.#read(offset, length)
  }
}
