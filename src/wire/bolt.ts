/**
 * Reads a bbolt database, the storage of etcd: a B+ tree of pages for each bucket; buckets are values of the root tree. Numbers
 * are little-endian (go.etcd.io/bbolt, internal/common: page.go, meta.go, inode.go, bucket.go).
 */
import { DecodeError } from './decode-error.ts'

/** Reads bytes of a file; fewer than requested at its end. */
export type ReadAt = (offset: number, length: number) => Uint8Array

/** Visits an entry of a bucket, which is valid until the next call. */
export type Visit = (key: Uint8Array, value: Uint8Array) => void

const magic = 0xed0cdaed
const version = 2
const headerSize = 16
const elementSize = 16
const bucketHeaderSize = 16
/** Size of a meta page's content before its checksum. */
const metaSize = 56
const flags = { branch: 0x01, leaf: 0x02, freelist: 0x10 }
/** The meta page names no list of free pages: it is computed when the database is opened. */
const noFreelist = 0xffff_ffff_ffff_ffffn
const isBucket = 0x01
/** Deeper than any tree whose pages fit in one file. */
const deepest = 32
/** Possible offsets of the second meta page, if the first is damaged. */
const pageSizes = [4096, 8192, 16_384, 32_768, 65_536]

interface Meta {
  readonly pageSize: number
  readonly root: number
  readonly freelist: bigint
  readonly pages: number
  readonly transaction: bigint
}

/** A database in a file that does not change meanwhile. */
export class BoltDatabase {
  readonly #read: ReadAt
  readonly #meta: Meta
  #visited = 0

  /** Throws DecodeError for a file that is not a database. */
  constructor(read: ReadAt) {
    this.#read = read
    const first = metaAt(read, 0)
    const others = (first ? [first.pageSize] : pageSizes).map((size) => metaAt(read, size))
    const [meta] = [first, ...others].filter((one) => one !== undefined).sort((a, b) => (a.transaction > b.transaction ? -1 : 1))
    if (!meta) throw new DecodeError('bolt database', 0, 'no valid meta page')
    this.#meta = meta
  }

  /** Size in bytes of all pages, used and free. */
  get size(): number {
    return this.#meta.pages * this.#meta.pageSize
  }

  /** Throws DecodeError unless the page that lists the free ones is one. */
  checkFreelist(): void {
    const { freelist, pageSize, pages } = this.#meta
    if (freelist === noFreelist) return
    const id = Number(freelist)
    const at = id * pageSize
    if (id < 2 || id >= pages) throw new DecodeError('bolt free list', at, `page ${id} is not one of ${pages}`)
    const header = view(this.#exactly(at, headerSize))
    if (Number(header.getBigUint64(0, true)) !== id || header.getUint16(8, true) !== flags.freelist)
      throw new DecodeError('bolt free list', at, 'it is another page')
  }

  /** Calls `enter` for each bucket, sorted by name, and the function it returns for each entry of that bucket. */
  eachEntry(enter: (name: Uint8Array) => Visit): void {
    this.#visited = 0
    this.#walk(this.#meta.root, 0, (name, header, kind) => {
      if (kind !== isBucket || header.length < bucketHeaderSize) throw new DecodeError('bolt bucket', 0, 'the root holds more than buckets')
      const visit = enter(name)
      const own = (key: Uint8Array, value: Uint8Array, inner: number) => visit(key, inner === isBucket ? empty : value)
      const root = Number(view(header).getBigUint64(0, true))
      // A small bucket is stored inline in its value, as one leaf.
      if (root === 0) this.#elements(header.subarray(bucketHeaderSize), 0, 0, own)
      else this.#walk(root, 0, own)
    })
  }

  #walk(id: number, depth: number, leaf: Leaf): void {
    const { pageSize, pages } = this.#meta
    const at = id * pageSize
    if (id < 2 || id >= pages) throw new DecodeError('bolt page', at, `page ${id} is not one of ${pages}`)
    if (depth > deepest || ++this.#visited > pages) throw new DecodeError('bolt page', at, 'its tree has a loop')
    const header = view(this.#exactly(at, headerSize))
    if (Number(header.getBigUint64(0, true)) !== id) throw new DecodeError('bolt page', at, 'it is another page')
    const overflow = header.getUint32(12, true)
    if (id + overflow >= pages) throw new DecodeError('bolt page', at, 'it ends behind the file')
    this.#elements(this.#exactly(at, (1 + overflow) * pageSize), at, depth, leaf)
  }

  #elements(page: Uint8Array, at: number, depth: number, leaf: Leaf): void {
    if (page.length < headerSize) throw new DecodeError('bolt page', at, 'it is cut')
    const numbers = view(page)
    const kind = numbers.getUint16(8, true)
    const count = numbers.getUint16(10, true)
    if (headerSize + count * elementSize > page.length) throw new DecodeError('bolt page', at, `${count} elements do not fit`)
    if (kind !== flags.leaf && kind !== flags.branch) throw new DecodeError('bolt page', at, `its kind is ${kind}`)
    for (let index = 0; index < count; index++) {
      const element = headerSize + index * elementSize
      if (kind === flags.branch) {
        this.#walk(Number(numbers.getBigUint64(element + 8, true)), depth + 1, leaf)
        continue
      }
      const key = element + numbers.getUint32(element + 4, true)
      const value = key + numbers.getUint32(element + 8, true)
      const end = value + numbers.getUint32(element + 12, true)
      if (end > page.length) throw new DecodeError('bolt page', at + element, 'an entry ends behind its page')
      leaf(page.subarray(key, value), page.subarray(value, end), numbers.getUint32(element, true))
    }
  }

  #exactly(offset: number, length: number): Uint8Array {
    const bytes = this.#read(offset, length)
    if (bytes.length < length) throw new DecodeError('bolt database', offset, 'the file is cut')
    return bytes
  }
}

type Leaf = (key: Uint8Array, value: Uint8Array, kind: number) => void

const empty = new Uint8Array(0)

const view = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** The meta page at an offset, unless it is invalid or was not written completely. */
function metaAt(read: ReadAt, offset: number): Meta | undefined {
  const page = read(offset, headerSize + metaSize + 8)
  if (page.length < headerSize + metaSize + 8) return undefined
  const bytes = page.subarray(headerSize)
  const numbers = view(bytes)
  if (numbers.getUint32(0, true) !== magic || numbers.getUint32(4, true) !== version) return undefined
  if (numbers.getBigUint64(metaSize, true) !== fnv1a(bytes.subarray(0, metaSize))) return undefined
  const pageSize = numbers.getUint32(8, true)
  const meta = {
    pageSize,
    root: Number(numbers.getBigUint64(16, true)),
    freelist: numbers.getBigUint64(32, true),
    pages: Number(numbers.getBigUint64(40, true)),
    transaction: numbers.getBigUint64(48, true),
  }
  return pageSizes.includes(pageSize) && Number.isSafeInteger(meta.pages * pageSize) ? meta : undefined
}

/** 64-bit FNV-1a. */
function fnv1a(bytes: Uint8Array): bigint {
  let sum = 0xcbf29ce484222325n
  for (const byte of bytes) sum = BigInt.asUintN(64, (sum ^ BigInt(byte)) * 0x100000001b3n)
  return sum
}
