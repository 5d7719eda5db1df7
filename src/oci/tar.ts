/**
 * Tar headers in the ustar format (POSIX.1-1988). Equal entries give equal bytes: no times, no owner names, no extensions.
 * This is all that a container layer of plain files needs.
 */
import type { LayerEntry } from './image.ts'

/** The block size of tar in bytes. */
export const tarBlock = 512

/** The two empty blocks that end an archive. */
export const tarEnd: Uint8Array = new Uint8Array(2 * tarBlock)

/** An entry that the format cannot represent. */
export class TarError extends Error {
  override name = 'TarError'
}

const kinds = { file: '0', symlink: '2', dir: '5' } as const

/** The 512-byte header of an entry. */
export function tarHeader(entry: LayerEntry): Uint8Array {
  const header = new Uint8Array(tarBlock)
  const [prefix, name] = splitPath(entry.type === 'dir' ? `${entry.path}/` : entry.path)
  const target = entry.type === 'symlink' ? (entry.target ?? '') : ''
  if (Buffer.byteLength(target) > 100) throw new TarError(`tar entry "${entry.path}": link target is longer than 100 bytes`)
  const size = entry.type === 'file' ? (entry.size ?? 0) : 0
  if (!Number.isSafeInteger(size) || size < 0 || size > 0o77777777777) throw new TarError(`tar entry "${entry.path}": size ${size}`)
  put(header, 0, name)
  put(header, 100, octal(entry.mode & 0o7777, 7))
  put(header, 108, octal(entry.uid ?? 0, 7))
  put(header, 116, octal(entry.gid ?? 0, 7))
  put(header, 124, octal(size, 11))
  put(header, 136, octal(0, 11)) // modification time
  put(header, 148, ' '.repeat(8)) // the checksum counts as blanks while it is computed
  put(header, 156, kinds[entry.type])
  put(header, 157, target)
  put(header, 257, 'ustar\u000000')
  put(header, 329, octal(0, 7)) // device numbers
  put(header, 337, octal(0, 7))
  put(header, 345, prefix)
  const sum = header.reduce((total, byte) => total + byte, 0)
  put(header, 148, `${octal(sum, 6)}\0 `)
  return header
}

/** The number of zero bytes after `size` bytes of content. */
export function tarPadding(size: number): number {
  return (tarBlock - (size % tarBlock)) % tarBlock
}

/** The name field holds 100 bytes; a longer path is split at a slash into a prefix of at most 155 and the name. */
function splitPath(path: string): [prefix: string, name: string] {
  if (!path || path.startsWith('/') || path.split('/').includes('..') || path.includes('\0')) {
    throw new TarError(`tar entry "${path}": must be a relative path without ".."`)
  }
  if (Buffer.byteLength(path) <= 100) return ['', path]
  for (let slash = path.indexOf('/'); slash > 0; slash = path.indexOf('/', slash + 1)) {
    const prefix = path.slice(0, slash)
    const name = path.slice(slash + 1)
    if (Buffer.byteLength(prefix) <= 155 && name && Buffer.byteLength(name) <= 100) return [prefix, name]
  }
  throw new TarError(`tar entry "${path}": path is too long`)
}

function octal(value: number, digits: number): string {
  const text = value.toString(8).padStart(digits, '0')
  if (text.length > digits || value < 0) throw new TarError(`tar field: ${value} does not fit ${digits} octal digits`)
  return text
}

function put(header: Uint8Array, offset: number, text: string): void {
  header.set(Buffer.from(text), offset)
}
