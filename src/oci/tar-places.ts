/** Locates files in a tar archive with random access: ustar, with GNU long names and POSIX extended paths. */
import { TarError, tarBlock } from './tar.ts'

/** Reads exactly `length` bytes. */
export type ReadAt = (offset: number, length: number) => Promise<Uint8Array>

/** A file in an archive. */
export interface TarPlace {
  /** Without a leading `./` or `/`. */
  readonly name: string
  /** Offset of its contents. */
  readonly offset: number
  readonly size: number
}

const entryLimit = 100_000
const headerLimit = 1 << 20

/** Every regular file of an archive of `size` bytes. Throws TarError when it is not an archive or is truncated. */
export async function findTarPlaces(read: ReadAt, size: number): Promise<TarPlace[]> {
  const places: TarPlace[] = []
  let longName: string | undefined
  for (let at = 0, entries = 0; at + tarBlock <= size; entries++) {
    if (entries > entryLimit) throw new TarError(`tar archive: more than ${entryLimit} entries`)
    const header = Buffer.from(await read(at, tarBlock))
    if (header.every((byte) => byte === 0)) return places
    if (sumOf(header) !== octal(header, 148, 8)) throw new TarError(`tar archive: no header at ${at}`)
    const length = octal(header, 124, 12)
    const begin = at + tarBlock
    if (begin + length > size) throw new TarError('tar archive: truncated in the middle of a file')
    const kind = String.fromCharCode(header[156] ?? 0)
    if (kind === 'L' || kind === 'x') {
      if (length > headerLimit) throw new TarError('tar archive: a name is too long')
      const bytes = Buffer.from(await read(begin, length))
      longName = kind === 'L' ? cString(bytes) : (/(?:^|\n)\d+ path=(.*)\n/.exec(bytes.toString())?.[1] ?? longName)
    } else {
      const prefix = header.toString('latin1', 257, 262) === 'ustar' ? cString(header.subarray(345, 500)) : ''
      const short = cString(header.subarray(0, 100))
      const name = longName ?? (prefix ? `${prefix}/${short}` : short)
      longName = undefined
      if (kind === '0' || kind === '\0') places.push({ name: name.replace(/^(\.?\/)+/, ''), offset: begin, size: length })
    }
    at = begin + Math.ceil(length / tarBlock) * tarBlock
  }
  throw new TarError('tar archive: the end-of-archive marker is missing')
}

function sumOf(header: Uint8Array): number {
  return header.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 32 : byte), 0)
}

/** An octal number, or one of GNU's in base 256. */
function octal(header: Buffer, at: number, length: number): number {
  if ((header[at] ?? 0) & 0x80) {
    const value = header.readBigUInt64BE(at + length - 8)
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new TarError('tar archive: a number is too large')
    return Number(value)
  }
  const text = cString(header.subarray(at, at + length)).trim()
  if (!/^[0-7]*$/.test(text)) throw new TarError('tar archive: invalid octal number')
  return Number.parseInt(text || '0', 8)
}

function cString(bytes: Uint8Array): string {
  const end = bytes.indexOf(0)
  return Buffer.from(end < 0 ? bytes : bytes.subarray(0, end)).toString('utf8')
}
