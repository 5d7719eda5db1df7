/**
 * HPACK: headers as indices into a table that both sides of a connection update in the same way. RFC 7541.
 * Each direction of a connection has one encoder and one decoder, which process every header block in order.
 */
import { ConnectionError } from './error.ts'
import { decodeHuffman } from './huffman.ts'
import { type HeaderEntry, staticTable } from './static-table.ts'

/** Headers by their lower-case name; a repeated name has a list. Pseudo-headers begin with a colon. */
export type Headers = Record<string, string | string[]>

/** Headers to send; undefined values are omitted. */
export type OutgoingHeaders = Readonly<Record<string, string | number | readonly string[] | undefined>>

/** The overhead of a table entry besides its name and value. RFC 7541, section 4.1. */
const overhead = 32

/** The default size of a table. */
const defaultTableSize = 4096

function sizeOf({ name, value }: HeaderEntry): number {
  return name.length + value.length + overhead
}

/** The most recent entries that fit. */
class Table {
  /** Oldest first; those before `#first` were evicted. */
  #entries: HeaderEntry[] = []
  #first = 0
  #size = 0
  #limit = defaultTableSize
  readonly #evicted: ((entry: HeaderEntry, number: number) => void) | undefined
  /** How many were removed from the array, so that numbers stay stable. */
  #dropped = 0

  constructor(evicted?: (entry: HeaderEntry, number: number) => void) {
    this.#evicted = evicted
  }

  get length(): number {
    return this.#entries.length - this.#first
  }

  /** The entry by age: 0 is the newest. */
  at(age: number): HeaderEntry | undefined {
    const index = this.#entries.length - 1 - age
    return index >= this.#first ? this.#entries[index] : undefined
  }

  /** The age of the n-th entry ever added. */
  age(number: number): number {
    return this.#dropped + this.#entries.length - 1 - number
  }

  /** Returns the entry's number, or -1 when it is larger than the table, which is then empty. */
  add(entry: HeaderEntry): number {
    const size = sizeOf(entry)
    this.#evict(this.#limit - size)
    if (size > this.#limit) return -1
    this.#entries.push(entry)
    this.#size += size
    return this.#dropped + this.#entries.length - 1
  }

  set limit(limit: number) {
    this.#limit = limit
    this.#evict(limit)
  }

  get limit(): number {
    return this.#limit
  }

  #evict(room: number): void {
    for (let entry = this.#entries[this.#first]; entry && this.#size > Math.max(0, room); entry = this.#entries[this.#first]) {
      this.#evicted?.(entry, this.#dropped + this.#first)
      this.#first++
      this.#size -= sizeOf(entry)
    }
    if (this.#first < 64 || this.#first * 2 < this.#entries.length) return
    this.#dropped += this.#first
    this.#entries = this.#entries.slice(this.#first)
    this.#first = 0
  }
}

/** Decodes header blocks. It only throws ConnectionError, since the tables are then no longer equal. */
export class HpackDecoder {
  readonly #table = new Table()
  readonly #tableLimit: number
  #block: Buffer = Buffer.alloc(0)
  #at = 0

  /** `tableLimit` is the table size that was announced to the peer. */
  constructor(tableLimit = defaultTableSize) {
    this.#tableLimit = tableLimit
  }

  /** Yields each header of a block, in order. */
  decode(block: Buffer, take: (name: string, value: string) => void): void {
    this.#block = block
    this.#at = 0
    let begun = false
    for (let first = block[0]; first !== undefined; first = block[this.#at]) {
      if (first & 0x80) {
        const { name, value } = this.#entry(this.#integer(7))
        take(name, value)
      } else if ((first & 0xe0) === 0x20) {
        if (begun) throw new ConnectionError('COMPRESSION_ERROR', 'table size changes within a header block')
        const limit = this.#integer(5)
        if (limit > this.#tableLimit) throw new ConnectionError('COMPRESSION_ERROR', `table of ${limit} bytes was never allowed`)
        this.#table.limit = limit
        continue
      } else {
        const indexed = (first & 0x40) !== 0
        const index = this.#integer(indexed ? 6 : 4)
        const name = index === 0 ? this.#text() : this.#entry(index).name
        const value = this.#text()
        if (indexed) this.#table.add({ name, value })
        take(name, value)
      }
      begun = true
    }
  }

  #entry(index: number): HeaderEntry {
    const entry = index < staticTable.length ? (index > 0 ? staticTable[index] : undefined) : this.#table.at(index - staticTable.length)
    if (!entry) throw new ConnectionError('COMPRESSION_ERROR', `no header has index ${index}`)
    return entry
  }

  /** RFC 7541, section 5.1; at most 28 bits more than the prefix. */
  #integer(prefix: number): number {
    const most = (1 << prefix) - 1
    let value = this.#byte() & most
    if (value < most) return value
    for (let shift = 0; ; shift += 7) {
      const byte = this.#byte()
      if (shift > 21) throw new ConnectionError('COMPRESSION_ERROR', numberProblem)
      value += (byte & 0x7f) << shift
      if ((byte & 0x80) === 0) return value
    }
  }

  #byte(): number {
    const byte = this.#block[this.#at++]
    if (byte === undefined) throw new ConnectionError('COMPRESSION_ERROR', numberProblem)
    return byte
  }

  #text(): string {
    const coded = ((this.#block[this.#at] ?? 0) & 0x80) !== 0
    const size = this.#at < this.#block.length ? this.#integer(7) : this.#block.length + 1
    const end = this.#at + size
    if (end > this.#block.length) throw new ConnectionError('COMPRESSION_ERROR', 'header text is cut off')
    const text = coded ? decodeHuffman(this.#block.subarray(this.#at, end)) : this.#block.toString('latin1', this.#at, end)
    this.#at = end
    return text
  }
}

const numberProblem = 'number in a header block is cut off or too long'

/** Names whose values differ from call to call: they are not added to the table. */
const changing = new Set([
  ':authority',
  'grpc-timeout',
  'grpc-message',
  'content-length',
  'date',
  'ichor-caller-address',
  'ichor-connection-age',
])

/** Names whose values no hop may add to a table. RFC 7541, section 7.1.3. */
const secret = new Set(['authorization', 'proxy-authorization', 'cookie', 'set-cookie', 'token', 'grpc-metadata-token'])

/** The first index of each name in the static table, and those of its values. */
const staticHeaders = new Map<string, { first: number; values: Map<string, number> }>()
for (const [index, { name, value }] of [...staticTable.entries()].slice(1).reverse()) {
  const values = staticHeaders.get(name)?.values ?? new Map<string, number>()
  staticHeaders.set(name, { first: index, values: values.set(value, index) })
}

/** Longer values are rarely repeated. */
const longestKept = 512

/** Encodes header blocks; strings are sent unencoded, since Huffman coding costs more time than it saves. */
export class HpackEncoder {
  /** The numbers of table entries, by name and value. */
  readonly #known = new Map<string, Map<string, number>>()
  readonly #table = new Table(({ name, value }, number) => {
    const values = this.#known.get(name)
    if (values?.get(value) !== number) return
    values.delete(value)
    if (values.size === 0) this.#known.delete(name)
  })
  #out: Buffer = Buffer.allocUnsafe(512)
  #at = 0
  /** The smallest limit since the last block, and the last; -1 when there is no update to send. */
  #smallest = -1

  /** The table size that the peer allows; no more than the default is used. */
  set tableLimit(limit: number) {
    const used = Math.min(limit, defaultTableSize)
    if (used === this.#table.limit && this.#smallest < 0) return
    this.#smallest = this.#smallest < 0 ? used : Math.min(this.#smallest, used)
    this.#table.limit = used
  }

  /** Encodes headers; the result is valid until the next call. */
  encode(headers: OutgoingHeaders): Buffer {
    this.#at = 0
    if (this.#smallest >= 0) {
      if (this.#smallest < this.#table.limit) this.#integer(0x20, 5, this.#smallest)
      this.#integer(0x20, 5, this.#table.limit)
      this.#smallest = -1
    }
    for (const name in headers) {
      const value = headers[name]
      if (value === undefined) continue
      if (typeof value === 'object') for (const each of value) this.#header(name, each)
      else this.#header(name, String(value))
    }
    return this.#out.subarray(0, this.#at)
  }

  #header(name: string, value: string): void {
    const number = this.#known.get(name)?.get(value)
    if (number !== undefined) {
      this.#integer(0x80, 7, staticTable.length + this.#table.age(number))
      return
    }
    const known = staticHeaders.get(name)
    const nameIndex = known?.first
    const pair = known?.values.get(value)
    if (pair !== undefined) {
      this.#integer(0x80, 7, pair)
      return
    }
    if (secret.has(name)) this.#literal(0x10, 4, nameIndex, name, value)
    else if (value.length > longestKept || changing.has(name)) this.#literal(0x00, 4, nameIndex, name, value)
    else {
      this.#literal(0x40, 6, nameIndex, name, value)
      const added = this.#table.add({ name, value })
      if (added < 0) return
      let values = this.#known.get(name)
      if (!values) {
        values = new Map()
        this.#known.set(name, values)
      }
      values.set(value, added)
    }
  }

  #literal(mark: number, prefix: number, nameIndex: number | undefined, name: string, value: string): void {
    this.#integer(mark, prefix, nameIndex ?? 0)
    if (nameIndex === undefined) this.#text(name)
    this.#text(value)
  }

  #integer(mark: number, prefix: number, value: number): void {
    this.#room(8)
    const most = (1 << prefix) - 1
    if (value < most) {
      this.#out[this.#at++] = mark | value
      return
    }
    this.#out[this.#at++] = mark | most
    let rest = value - most
    for (; rest >= 0x80; rest = Math.floor(rest / 128)) this.#out[this.#at++] = (rest & 0x7f) | 0x80
    this.#out[this.#at++] = rest
  }

  #text(text: string): void {
    this.#integer(0, 7, text.length)
    this.#room(text.length)
    this.#at += this.#out.write(text, this.#at, 'latin1')
  }

  #room(size: number): void {
    if (this.#at + size <= this.#out.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#out.length * 2, this.#at + size))
    this.#out.copy(larger, 0, 0, this.#at)
    this.#out = larger
  }
}
