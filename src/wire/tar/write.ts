/** Writes tar archives. Equal entries give equal bytes; a pax header comes before an entry that ustar cannot represent, and only then. */
import { TarError, type TarField, type TarType, tarBlock, tarChecksum, tarFields, tarPadding, tarTypes } from './format.ts'

/** The fields of a header. */
export interface TarHeader {
  /** Relative, without `..`; of a directory with or without a slash at its end. */
  readonly path: string
  readonly type: TarType
  /** Permissions as in chmod(2). */
  readonly mode: number
  readonly uid?: number | undefined
  readonly gid?: number | undefined
  /** Bytes of content; only of a file. */
  readonly size?: number | undefined
  /** Seconds since 1970. */
  readonly modified?: number | undefined
  /** The target of a link; of a hard link the path of an entry before it. */
  readonly target?: string | undefined
  readonly device?: { readonly major: number; readonly minor: number } | undefined
}

/** A file with its content, which must have `size` bytes unless it is given at once. */
export interface TarMember extends TarHeader {
  readonly content?: Uint8Array | AsyncIterable<Uint8Array>
}

/** The two empty blocks that end an archive. */
export const tarEnd: Uint8Array = new Uint8Array(2 * tarBlock)

const letters = Object.fromEntries(Object.entries(tarTypes).map(([letter, type]) => [type, letter])) as Record<TarType, string>

/** The header of an entry, with a pax header before it if necessary. Throws TarError. */
export function tarHeader(entry: TarHeader): Uint8Array {
  const { mode, uid = 0, gid = 0, modified = 0, device, target = '' } = entry
  const size = entry.type === 'file' ? (entry.size ?? 0) : 0
  if (!Number.isSafeInteger(size) || size < 0) throw new TarError(`tar entry "${entry.path}": size ${size}`)
  if (target.includes('\0')) throw new TarError(`tar entry "${entry.path}": the target of the link has a zero byte`)
  const path = entry.type === 'directory' && !entry.path.endsWith('/') ? `${entry.path}/` : entry.path
  const names = splitPath(path)
  const records: Record<string, string> = {
    ...(!names && { path }),
    ...(Buffer.byteLength(target) > tarFields.target[1] && { linkpath: target }),
    ...(!fits('size', size) && { size: `${size}` }),
    ...(!fits('uid', uid) && { uid: `${uid}` }),
    ...(!fits('gid', gid) && { gid: `${gid}` }),
    ...(!fits('modified', modified) && { mtime: `${modified}` }),
  }
  const numbers = { mode: mode & 0o7777, uid, gid, size, modified, major: device?.major ?? 0, minor: device?.minor ?? 0 }
  const [prefix, name] = names ?? ['', path]
  const header = headerBlock(letters[entry.type], { name, target, prefix }, numbers)
  if (Object.keys(records).length === 0) return header
  const body = Buffer.concat(Object.entries(records).map(paxRecord))
  const extended = headerBlock('x', { name: 'PaxHeaders/entry', target: '', prefix: '' }, { mode: 0o644, size: body.length })
  return Buffer.concat([extended, body, tarPadding(body.length), header])
}

/** A whole archive, as it comes. Throws TarError, also for content that is not as long as its header states. */
export async function* writeTar(members: Iterable<TarMember> | AsyncIterable<TarMember>): AsyncGenerator<Uint8Array, void> {
  for await (const member of members) {
    const { content = new Uint8Array() } = member
    const size = content instanceof Uint8Array ? content.length : (member.size ?? 0)
    yield tarHeader({ ...member, size })
    if (member.type !== 'file') continue
    let written = 0
    for await (const piece of content instanceof Uint8Array ? [content] : content) {
      written += piece.length
      if (written > size) break
      if (piece.length > 0) yield piece
    }
    if (written !== size) throw new TarError(`tar entry "${member.path}": its content has changed, it is not of ${size} bytes`)
    if (size % tarBlock > 0) yield tarPadding(size)
  }
  yield tarEnd
}

/** The name field holds 100 bytes; a longer path is split at a slash into a prefix of at most 155 and the name, if that is possible. */
function splitPath(path: string): [prefix: string, name: string] | undefined {
  if (!path || path.startsWith('/') || path.split('/').includes('..') || path.includes('\0'))
    throw new TarError(`tar entry "${path}": must be a relative path without ".."`)
  const short = (text: string, field: TarField) => Buffer.byteLength(text) <= tarFields[field][1]
  if (short(path, 'name')) return ['', path]
  for (let slash = path.indexOf('/'); slash > 0; slash = path.indexOf('/', slash + 1)) {
    const [prefix, name] = [path.slice(0, slash), path.slice(slash + 1)]
    if (short(prefix, 'prefix') && name && short(name, 'name')) return [prefix, name]
  }
  return undefined
}

/** Whether a number can be written in octal into a field, of which the last byte ends it. */
const fits = (field: TarField, value: number): boolean =>
  Number.isSafeInteger(value) && value >= 0 && value < 8 ** (tarFields[field][1] - 1)

/** A header with its checksum. What does not fit is cut or zero: the pax header before it has it in full. */
function headerBlock(
  letter: string,
  texts: Record<'name' | 'target' | 'prefix', string>,
  numbers: Partial<Record<TarField, number>>,
): Buffer {
  const header = Buffer.alloc(tarBlock)
  const put = (field: TarField, bytes: Uint8Array) => header.set(bytes.subarray(0, tarFields[field][1]), tarFields[field][0])
  const octal = (field: TarField, value: number) =>
    put(field, Buffer.from((fits(field, value) ? value : 0).toString(8).padStart(tarFields[field][1] - 1, '0')))
  for (const [field, text] of Object.entries(texts)) put(field as TarField, Buffer.from(text))
  for (const field of ['mode', 'uid', 'gid', 'size', 'modified', 'major', 'minor'] as const) octal(field, numbers[field] ?? 0)
  put('type', Buffer.from(letter))
  put('magic', Buffer.from('ustar\u000000'))
  put('checksum', Buffer.from(`${tarChecksum(header).toString(8).padStart(6, '0')}\0 `))
  return header
}

/** `length key=value\n`, where the length includes itself. */
function paxRecord([key, value]: [string, string]): Buffer {
  const rest = Buffer.byteLength(` ${key}=${value}\n`)
  let length = rest + String(rest).length
  if (rest + String(length).length !== length) length = rest + String(length).length
  return Buffer.from(`${length} ${key}=${value}\n`)
}
