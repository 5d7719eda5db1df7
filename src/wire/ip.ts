import { DecodeError } from './decode-error.ts'

function parseIp4(text: string): number[] | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part))) return undefined
  const bytes = parts.map(Number)
  return bytes.every((byte) => byte < 256) ? bytes : undefined
}

function parseGroups(text: string): number[] | undefined {
  if (text === '') return []
  const bytes: number[] = []
  const groups = text.split(':')
  for (const [index, group] of groups.entries()) {
    if (index === groups.length - 1 && group.includes('.')) {
      const tail = parseIp4(group)
      if (!tail) return undefined
      bytes.push(...tail)
    } else {
      if (!/^[0-9a-f]{1,4}$/i.test(group)) return undefined
      const value = Number.parseInt(group, 16)
      bytes.push(value >> 8, value & 255)
    }
  }
  return bytes
}

/** The 4 or 16 bytes of an IP address; undefined when it is malformed (or has a zone). */
export function parseIp(text: string): Uint8Array | undefined {
  if (text.length > 45) return undefined
  if (!text.includes(':')) {
    const bytes = parseIp4(text)
    return bytes && Uint8Array.from(bytes)
  }
  const [head = '', tail, ...more] = text.split('::')
  if (more.length > 0) return undefined
  const before = parseGroups(head)
  const after = tail === undefined ? [] : parseGroups(tail)
  if (!before || !after || (head.includes('.') && tail !== undefined)) return undefined
  const length = before.length + after.length
  if (tail === undefined ? length !== 16 : length > 14) return undefined
  const bytes = new Uint8Array(16)
  bytes.set(before)
  bytes.set(after, 16 - after.length)
  return bytes
}

/** Whether a string is an IP address, without a prefix length or zone. */
export const isIp = (text: string): boolean => parseIp(text) !== undefined

/** The 4 bytes of an IPv4 address that is mapped into IPv6 (RFC 4291, 2.5.5.2); any other address as it is. */
export function unmapped(bytes: Uint8Array): Uint8Array {
  const mapped = bytes.length === 16 && bytes[10] === 255 && bytes[11] === 255 && bytes.subarray(0, 10).every((byte) => byte === 0)
  return mapped ? bytes.subarray(12) : bytes
}

/** The canonical string of an IP address (RFC 5952). */
export function formatIp(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  if (bytes.length !== 16) throw new DecodeError('IP address', 0, `${bytes.length} bytes`)
  const four = unmapped(bytes)
  if (four.length === 4) return `::ffff:${four.join('.')}`
  const groups = Array.from({ length: 8 }, (_, index) => ((bytes[index * 2] ?? 0) << 8) | (bytes[index * 2 + 1] ?? 0))
  let best = { start: -1, length: 1 } // one zero group alone is not shortened
  for (let start = 0; start < 8; start++) {
    let length = 0
    while (groups[start + length] === 0) length++
    if (length > best.length) best = { start, length }
  }
  const text = (part: number[]) => part.map((group) => group.toString(16)).join(':')
  if (best.start < 0) return text(groups)
  return `${text(groups.slice(0, best.start))}::${text(groups.slice(best.start + best.length))}`
}

/** A hardware address in colon-separated hexadecimal. */
export function formatMac(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(':')
}

/** The bytes of a hardware address; undefined when it is malformed. */
export function parseMac(text: string): Uint8Array | undefined {
  if (!/^[0-9a-f]{2}([:-][0-9a-f]{2}){0,31}$/i.test(text)) return undefined
  return Uint8Array.from(text.split(/[:-]/), (part) => Number.parseInt(part, 16))
}
