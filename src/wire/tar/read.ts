/**
 * Reads tar archives, as they arrive or at random. What is held in memory is one block and the names of one entry; the content of
 * an entry has to be read, or left, before the next entry. An archive without the blocks that end it is truncated.
 */
import { TarError, type TarField, type TarType, tarBlock, tarChecksum, tarFields, tarPadding, tarTypes } from './format.ts'

/** An entry of an archive. */
export interface TarEntry {
  /** As the archive has it: it may be absolute, or contain `..`. */
  readonly name: string
  readonly type: TarType | 'other'
  /** Permissions as in chmod(2). */
  readonly mode: number
  readonly uid: number
  readonly gid: number
  /** Seconds since 1970. */
  readonly modified: number
  readonly size: number
  /** The target of a link. */
  readonly target: string
  /** Where the content begins in the archive. */
  readonly offset: number
  readonly content: AsyncIterable<Uint8Array>
}

/** Reads exactly `length` bytes. */
export type ReadAt = (offset: number, length: number) => Promise<Uint8Array>

/** A file in an archive. */
export interface TarPlace {
  /** Without a leading `./` or `/`. */
  readonly name: string
  /** Offset of its content. */
  readonly offset: number
  readonly size: number
}

/** Bytes of names and other extended data of one entry. */
const extendedLimit = 1 << 20
const placeLimit = 100_000

/** The entries of an archive, in their order; what follows the archive is read as well. Throws TarError. */
export async function* tarEntries(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry, void> {
  const source = new StreamSource(chunks)
  yield* entriesOf(source)
  for (let rest = await source.some(tarBlock); rest; rest = await source.some(tarBlock));
}

/** Every regular file of an archive of `size` bytes, whose contents are not read. Throws TarError. */
export async function findTarPlaces(read: ReadAt, size: number): Promise<TarPlace[]> {
  const places: TarPlace[] = []
  let entries = 0
  for await (const entry of entriesOf(new RandomSource(read, size))) {
    if (++entries > placeLimit) throw new TarError(`tar archive: more than ${placeLimit} entries`)
    if (entry.type === 'file') places.push({ name: entry.name.replace(/^(\.?\/)+/, ''), offset: entry.offset, size: entry.size })
  }
  return places
}

/** Where an archive is read from; `at` is the offset of what is read next. */
interface Source {
  readonly at: number
  /** At most so many bytes, undefined at the end. */
  some(most: number): Promise<Uint8Array | undefined>
  /** Skips so many bytes. */
  skip(count: number): Promise<void>
}

class StreamSource implements Source {
  readonly #chunks: AsyncIterator<Uint8Array>
  #held: Uint8Array = new Uint8Array()
  at = 0

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  async some(most: number): Promise<Uint8Array | undefined> {
    while (this.#held.length === 0) {
      const { value, done } = await this.#chunks.next()
      if (done) return undefined
      this.#held = value
    }
    const part = this.#held.subarray(0, most)
    this.#held = this.#held.subarray(part.length)
    this.at += part.length
    return part
  }

  async skip(count: number): Promise<void> {
    for (let left = count; left > 0; ) left -= (await some(this, left)).length
  }
}

class RandomSource implements Source {
  at = 0

  constructor(
    readonly read: ReadAt,
    readonly size: number,
  ) {}

  async some(most: number): Promise<Uint8Array | undefined> {
    const length = Math.min(most, this.size - this.at)
    if (length <= 0) return undefined
    const part = await this.read(this.at, length)
    this.at += part.length
    return part
  }

  async skip(count: number): Promise<void> {
    if (this.at + count > this.size) throw truncated()
    this.at += count
  }
}

const truncated = () => new TarError('tar archive: truncated, it ends in the middle of an entry')

async function some(source: Source, most: number): Promise<Uint8Array> {
  const part = await source.some(most)
  if (!part || part.length === 0) throw truncated()
  return part
}

/** Exactly so many bytes. */
async function take(source: Source, count: number): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for (let left = count; left > 0; ) {
    const part = await some(source, left)
    parts.push(part)
    left -= part.length
  }
  return Buffer.concat(parts)
}

/** Content, once; `rest` skips what was not read. */
class Content {
  #left: number
  #padding: number

  constructor(
    readonly source: Source,
    size: number,
  ) {
    this.#left = size
    this.#padding = tarPadding(size).length
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    while (this.#left > 0) {
      const part = await some(this.source, this.#left)
      this.#left -= part.length
      yield part
    }
  }

  async rest(): Promise<void> {
    await this.source.skip(this.#left + this.#padding)
    this.#left = 0
    this.#padding = 0
  }
}

/** What precedes an entry: GNU's long names, and pax records by key. */
interface Extended {
  longName?: string
  longTarget?: string
  records: ReadonlyMap<string, string>
}

async function* entriesOf(source: Source): AsyncGenerator<TarEntry, void> {
  const general = new Map<string, string>()
  let extended: Extended = { records: new Map() }
  for (;;) {
    const header = await headerAt(source)
    if (!header) return
    const letter = String.fromCharCode(header[tarFields.type[0]] ?? 0)
    const size = number(header, 'size')
    if (/[LKxg]/.test(letter)) {
      if (size > extendedLimit) throw new TarError(`tar archive: a name is too long, its header has ${size} bytes`)
      const bytes = await take(source, size)
      await source.skip(tarPadding(size).length)
      if (letter === 'L') extended.longName = text(bytes)
      else if (letter === 'K') extended.longTarget = text(bytes)
      else if (letter === 'x') extended.records = paxRecords(bytes)
      else for (const [key, value] of paxRecords(bytes)) if (knownRecords.has(key)) general.set(key, value)
      continue
    }
    const entry = describe(header, letter, extended, general)
    const content = new Content(source, entry.type === 'file' || entry.type === 'other' ? entry.size : 0)
    yield { ...entry, offset: source.at, content }
    await content.rest()
    extended = { records: new Map() }
  }
}

/** The next header; undefined for the empty block behind the last entry. */
async function headerAt(source: Source): Promise<Buffer | undefined> {
  const at = source.at
  const first = await source.some(tarBlock)
  if (!first) throw new TarError('tar archive: truncated, the end-of-archive marker is missing')
  const header = Buffer.concat([first, await take(source, tarBlock - first.length)])
  if (header.every((byte) => byte === 0)) return undefined
  if (tarChecksum(header) !== number(header, 'checksum')) throw new TarError(`tar archive: no header at ${at}, its checksum is wrong`)
  return header
}

/** Keys that a pax header for all entries may set; others are not kept. */
const knownRecords = new Set(['path', 'linkpath', 'size', 'uid', 'gid', 'mtime'])

function describe(
  header: Buffer,
  letter: string,
  { longName, longTarget, records }: Extended,
  general: ReadonlyMap<string, string>,
): Omit<TarEntry, 'offset' | 'content'> {
  if (letter === 'S' || [...records.keys()].some((key) => key.startsWith('GNU.sparse')))
    throw new TarError('tar archive: it has a sparse file, which is not supported')
  // An empty value takes back what the header for all entries has.
  const record = (key: string) => (records.get(key) ?? general.get(key)) || undefined
  const numeric = (key: string, field: TarField) => {
    const value = record(key)
    return value === undefined ? number(header, field) : whole(key, value)
  }
  const prefix = field(header, 'magic').startsWith('ustar') && field(header, 'prefix')
  const short = field(header, 'name')
  const name = record('path') ?? longName ?? (prefix ? `${prefix}/${short}` : short)
  const type = letter === '\0' || letter === '7' ? (name.endsWith('/') ? 'directory' : 'file') : isType(letter) ? tarTypes[letter] : 'other'
  return {
    name,
    type,
    mode: number(header, 'mode') & 0o7777,
    uid: numeric('uid', 'uid'),
    gid: numeric('gid', 'gid'),
    modified: seconds(record('mtime')) ?? number(header, 'modified'),
    size: numeric('size', 'size'),
    target: record('linkpath') ?? longTarget ?? field(header, 'target'),
  }
}

const isType = (letter: string): letter is keyof typeof tarTypes => letter in tarTypes

/** Text up to a zero byte. */
function text(bytes: Uint8Array): string {
  const end = bytes.indexOf(0)
  return Buffer.from(end < 0 ? bytes : bytes.subarray(0, end)).toString()
}

function bytesOf(header: Buffer, name: TarField): Buffer {
  const [start, length] = tarFields[name]
  return header.subarray(start, start + length)
}

const field = (header: Buffer, name: TarField): string => text(bytesOf(header, name))

/** An octal number, or one of GNU's in base 256, of which the highest bit is set. */
function number(header: Buffer, name: TarField): number {
  const bytes = bytesOf(header, name)
  if ((bytes[0] ?? 0) & 0x80) {
    const value = bytes.reduce((total, byte, at) => total * 256 + (at === 0 ? byte & 0x7f : byte), 0)
    if (!Number.isSafeInteger(value)) throw new TarError(`tar archive: ${name} of an entry is too large`)
    return value
  }
  const digits = text(bytes).trim()
  if (!/^[0-7]*$/.test(digits)) throw new TarError(`tar archive: ${name} of an entry is "${digits}", not an octal number`)
  return Number.parseInt(digits || '0', 8)
}

function whole(key: string, digits: string): number {
  const value = Number(digits)
  if (!/^\d+$/.test(digits) || !Number.isSafeInteger(value))
    throw new TarError(`tar archive: ${key} of an entry is "${digits}", not a number`)
  return value
}

function seconds(value: string | undefined): number | undefined {
  if (value !== undefined && !/^-?\d+(\.\d+)?$/.test(value)) throw new TarError(`tar archive: mtime of an entry is "${value}", not a time`)
  return value === undefined ? undefined : Number(value)
}

/** `length key=value\n` again and again. */
function paxRecords(bytes: Buffer): Map<string, string> {
  const found = new Map<string, string>()
  for (let at = 0; at < bytes.length; ) {
    const blank = bytes.indexOf(0x20, at)
    const length = blank < 0 ? Number.NaN : Number(bytes.toString('latin1', at, blank))
    const end = at + length
    if (!Number.isInteger(length) || end <= blank + 1 || end > bytes.length)
      throw new TarError('tar archive: an extended header is damaged')
    const record = bytes.toString('utf8', blank + 1, end - 1)
    const equals = record.indexOf('=')
    if (equals > 0) found.set(record.slice(0, equals), record.slice(equals + 1))
    at = end
  }
  return found
}
