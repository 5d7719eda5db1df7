/**
 * A tar stream of a file tree as it is: modes, owners, times, links. POSIX ustar headers; what they have no room for
 * (long names, large numbers) goes into a pax extended header before them (POSIX.1-2001, pax(1)).
 */
import type { Stats } from 'node:fs'
import type { Kernel } from '../kernel.ts'

const block = 512
const largestMade = 4 << 20

type Files = Pick<Kernel['files'], 'walk' | 'readlink' | 'openRead'>

/** Hears of what could not be read. */
type Skipped = (path: string, error: Error) => void

/** Packs a file, or what is in a folder; names are relative to it. What cannot be read is told and left out. */
export async function* archive(files: Files, root: string, skipped: Skipped): AsyncGenerator<Uint8Array, void> {
  const seen = new Map<string, string>()
  for await (const { path, relative, stats, error } of files.walk(root)) {
    if (error || !stats) {
      skipped(path, error ?? new Error('gone'))
      continue
    }
    // The folder itself is where the archive is laid out: an entry without a name is refused by clients.
    if (relative === '' && stats.isDirectory()) continue
    const name = relative || path.slice(path.lastIndexOf('/') + 1)
    if (stats.isSocket()) continue // a socket means nothing elsewhere
    const first = stats.nlink > 1 && stats.isFile() ? seen.get(`${stats.dev}:${stats.ino}`) : undefined
    if (first !== undefined) {
      yield* headers(name, '1', stats, { link: first })
      continue
    }
    if (stats.nlink > 1 && stats.isFile()) seen.set(`${stats.dev}:${stats.ino}`, name)
    if (stats.isSymbolicLink()) yield* link(files, path, name, stats, skipped)
    else if (stats.isDirectory()) yield* headers(`${name}/`, '5', stats)
    else if (stats.isCharacterDevice()) yield* headers(name, '3', stats)
    else if (stats.isBlockDevice()) yield* headers(name, '4', stats)
    else if (stats.isFIFO()) yield* headers(name, '6', stats)
    else if (path.startsWith('/sys/')) {
      const bytes = await madeContents(files, path).catch((failure: Error) => failure)
      if (bytes instanceof Error) skipped(path, bytes)
      else yield* made(name, stats, bytes)
    } else yield* contents(files, path, name, stats, skipped)
  }
  yield new Uint8Array(2 * block)
}

/** Of a file that the kernel makes when it is read the size is known only then. */
async function madeContents(files: Files, path: string): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of files.openRead(path, { end: largestMade - 1 })) chunks.push(chunk as Uint8Array)
  return Buffer.concat(chunks)
}

function* made(name: string, stats: Stats, bytes: Buffer): Generator<Uint8Array, void> {
  yield* headers(name, '0', stats, { size: bytes.length })
  if (bytes.length > 0) yield Buffer.concat([bytes, Buffer.alloc((block - (bytes.length % block)) % block)])
}

function* link(files: Files, path: string, name: string, stats: Stats, skipped: Skipped): Generator<Uint8Array, void> {
  try {
    yield* headers(name, '2', stats, { link: files.readlink(path) })
  } catch (error) {
    skipped(path, error as Error)
  }
}

/** A file that shrinks or fails while it is read is filled up, one that grows is cut: the header has promised its size. */
async function* contents(files: Files, path: string, name: string, stats: Stats, skipped: Skipped): AsyncGenerator<Uint8Array, void> {
  yield* headers(name, '0', stats, { size: stats.size })
  let left = stats.size
  try {
    if (left > 0)
      for await (const chunk of files.openRead(path, { end: stats.size - 1 })) {
        const piece = (chunk as Uint8Array).subarray(0, left)
        left -= piece.length
        yield piece
      }
  } catch (error) {
    skipped(path, error as Error)
  }
  for (; left > 0; left -= Math.min(left, 1 << 16)) yield new Uint8Array(Math.min(left, 1 << 16))
  const padding = (block - (stats.size % block)) % block
  if (padding > 0) yield new Uint8Array(padding)
}

function* headers(name: string, kind: string, stats: Stats, { link = '', size = 0 } = {}): Generator<Uint8Array, void> {
  const records: [string, string][] = []
  if (Buffer.byteLength(name) > 100) records.push(['path', name])
  if (Buffer.byteLength(link) > 100) records.push(['linkpath', link])
  if (size > 0o77777777777) records.push(['size', String(size)])
  if (stats.uid > 0o7777777) records.push(['uid', String(stats.uid)])
  if (stats.gid > 0o7777777) records.push(['gid', String(stats.gid)])
  if (records.length > 0) {
    const body = Buffer.concat(records.map(paxRecord))
    yield header({ name: 'PaxHeaders/entry', kind: 'x', mode: 0o644, uid: 0, gid: 0, size: body.length, mtime: 0, link: '' })
    yield Buffer.concat([body, Buffer.alloc((block - (body.length % block)) % block)])
  }
  yield header({
    name: cut(name),
    kind,
    mode: stats.mode & 0o7777,
    uid: Math.min(stats.uid, 0o7777777),
    gid: Math.min(stats.gid, 0o7777777),
    size: Math.min(size, 0o77777777777),
    mtime: Math.max(0, Math.floor(stats.mtimeMs / 1000)),
    link: cut(link),
    device: kind === '3' || kind === '4' ? stats.rdev : 0,
  })
}

function cut(text: string): string {
  return Buffer.from(text).subarray(0, 100).toString('latin1')
}

/** `length key=value\n`, the length counting itself. */
function paxRecord([key, value]: [string, string]): Buffer {
  const rest = Buffer.byteLength(` ${key}=${value}\n`)
  let length = rest + String(rest).length
  if (rest + String(length).length !== length) length = rest + String(length).length
  return Buffer.from(`${length} ${key}=${value}\n`)
}

interface Header {
  name: string
  kind: string
  mode: number
  uid: number
  gid: number
  size: number
  mtime: number
  link: string
  device?: number
}

function header({ name, kind, mode, uid, gid, size, mtime, link, device = 0 }: Header): Uint8Array {
  const bytes = Buffer.alloc(block)
  const octal = (value: number, offset: number, digits: number) => bytes.write(value.toString(8).padStart(digits, '0'), offset, 'latin1')
  bytes.write(name, 0, 'latin1')
  octal(mode, 100, 7)
  octal(uid, 108, 7)
  octal(gid, 116, 7)
  octal(size, 124, 11)
  octal(mtime, 136, 11)
  bytes.fill(0x20, 148, 156)
  bytes.write(kind, 156, 'latin1')
  bytes.write(link, 157, 'latin1')
  bytes.write('ustar\x0000', 257, 'latin1')
  octal((device >> 8) & 0xfff, 329, 7)
  octal(device & 0xff, 337, 7)
  const sum = bytes.reduce((all, byte) => all + byte, 0)
  octal(sum, 148, 6)
  bytes.writeUInt8(0, 154)
  return bytes
}
