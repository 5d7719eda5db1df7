/**
 * A tar archive read as it arrives: ustar with GNU's long names and base-256 numbers and POSIX's extended headers
 * (POSIX.1-2001 pax). An entry's content has to be read, or left, before the next entry.
 */

/** A file, folder or link in an archive. */
export interface TarEntry {
  readonly name: string
  readonly type: 'file' | 'directory' | 'symlink' | 'hardlink' | 'other'
  readonly mode: number
  /** Seconds since 1970. */
  readonly modified: number
  readonly size: number
  readonly target: string
  readonly content: AsyncIterable<Uint8Array>
}

/** A damaged archive, or a feature that this reader does not support. */
export class TarError extends Error {
  override name = 'TarError'
}

const block = 512
const largestHeader = 1024 * 1024

/** The entries of an archive. Throws TarError. */
export async function* tarEntries(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry, void> {
  const source = new Source(chunks)
  let longName: string | undefined
  let longTarget: string | undefined
  let extended: Record<string, string> = {}
  for (;;) {
    const header = await source.take(block)
    if (header === undefined || header.every((byte) => byte === 0)) return
    checkSum(header)
    const kind = String.fromCharCode(header[156] ?? 0)
    const declared = number(header, 124, 12)
    if (kind === 'L' || kind === 'K' || kind === 'x' || kind === 'g') {
      const bytes = await source.skipping(declared, largestHeader)
      if (kind === 'L') longName = text(bytes, 0, bytes.length)
      else if (kind === 'K') longTarget = text(bytes, 0, bytes.length)
      else if (kind === 'x') extended = records(bytes)
      continue
    }
    if (Object.keys(extended).some((key) => key.startsWith('GNU.sparse')))
      throw new TarError('tar entry is a sparse file of a kind that is not read')
    const size = extended.size === undefined ? declared : whole(extended.size)
    const types: Record<string, TarEntry['type']> = {
      '0': 'file',
      '\0': 'file',
      '7': 'file',
      '5': 'directory',
      '2': 'symlink',
      '1': 'hardlink',
    }
    const type = types[kind] ?? 'other'
    const content = source.content(type === 'file' || type === 'other' ? size : 0)
    yield {
      name: extended.path ?? longName ?? name(header),
      type,
      mode: number(header, 100, 8) & 0o7777,
      modified: extended.mtime === undefined ? number(header, 136, 12) : Number(extended.mtime),
      size,
      target: extended.linkpath ?? longTarget ?? text(header, 157, 100),
      content,
    }
    for await (const _ of content);
    longName = undefined
    longTarget = undefined
    extended = {}
  }
}

/** Bytes in pieces of the requested size. */
class Source {
  readonly #chunks: AsyncIterator<Uint8Array>
  #held: Uint8Array = new Uint8Array()

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** Exactly so many bytes; nothing at the end of the archive. */
  async take(count: number): Promise<Uint8Array | undefined> {
    const parts: Uint8Array[] = []
    let missing = count
    while (missing > 0) {
      const part = await this.#some(missing)
      if (!part) {
        if (missing === count) return undefined
        throw new TarError('tar archive ends in the middle of an entry')
      }
      parts.push(part)
      missing -= part.length
    }
    return parts.length === 1 ? parts[0] : Buffer.concat(parts)
  }

  /** An entry's bytes and the padding behind them. */
  async skipping(size: number, limit: number): Promise<Uint8Array> {
    if (size > limit) throw new TarError(`tar header of ${size} bytes is larger than ${limit}`)
    const bytes = (await this.take(Math.ceil(size / block) * block)) ?? new Uint8Array()
    if (bytes.length < size) throw new TarError('tar archive ends in the middle of an entry')
    return bytes.subarray(0, size)
  }

  /** The same in pieces, once; what is not read is skipped by reading on. */
  content(size: number): AsyncIterable<Uint8Array> {
    let left = size
    let padding = (block - (size % block)) % block
    const source = this
    return {
      async *[Symbol.asyncIterator]() {
        while (left > 0) {
          const part = await source.#some(left)
          if (!part) throw new TarError('tar archive ends in the middle of a file')
          left -= part.length
          yield part
        }
        if (padding > 0) await source.take(padding)
        padding = 0
      },
    }
  }

  async #some(most: number): Promise<Uint8Array | undefined> {
    while (this.#held.length === 0) {
      const { value, done } = await this.#chunks.next()
      if (done) return undefined
      this.#held = value
    }
    const part = this.#held.subarray(0, most)
    this.#held = this.#held.subarray(part.length)
    return part
  }
}

function checkSum(header: Uint8Array): void {
  const stated = number(header, 148, 8)
  const sum = header.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 32 : byte), 0)
  if (sum !== stated) throw new TarError(`tar header is damaged: checksum ${sum}, stated ${stated}`)
}

function name(header: Uint8Array): string {
  const prefix = text(header, 257, 5) === 'ustar' ? text(header, 345, 155) : ''
  return prefix ? `${prefix}/${text(header, 0, 100)}` : text(header, 0, 100)
}

function text(bytes: Uint8Array, offset: number, length: number): string {
  const field = bytes.subarray(offset, offset + length)
  const end = field.indexOf(0)
  return new TextDecoder().decode(end < 0 ? field : field.subarray(0, end))
}

function number(header: Uint8Array, offset: number, length: number): number {
  const field = header.subarray(offset, offset + length)
  if ((field[0] ?? 0) & 0x80) {
    const value = field.reduce((total, byte, index) => total * 256 + (index === 0 ? byte & 0x7f : byte), 0)
    if (!Number.isSafeInteger(value)) throw new TarError('tar header has a number that is too large')
    return value
  }
  const digits = text(header, offset, length).trim()
  if (!/^[0-7]*$/.test(digits)) throw new TarError(`tar header has "${digits}" where a number is wanted`)
  return digits === '' ? 0 : Number.parseInt(digits, 8)
}

function whole(digits: string): number {
  const value = Number(digits)
  if (!/^\d+$/.test(digits) || !Number.isSafeInteger(value)) throw new TarError(`tar header has "${digits}" where a size is wanted`)
  return value
}

/** "LENGTH KEY=VALUE\n" again and again. */
function records(bytes: Uint8Array): Record<string, string> {
  const found: Record<string, string> = Object.create(null)
  for (let at = 0; at < bytes.length; ) {
    const blank = bytes.indexOf(0x20, at)
    const length = blank < 0 ? Number.NaN : Number(text(bytes, at, blank - at))
    if (!Number.isInteger(length) || length < 5 || at + length > bytes.length) throw new TarError('tar extended header is damaged')
    const record = new TextDecoder().decode(bytes.subarray(blank + 1, at + length - 1))
    const equals = record.indexOf('=')
    if (equals > 0) found[record.slice(0, equals)] = record.slice(equals + 1)
    at += length
  }
  return found
}
