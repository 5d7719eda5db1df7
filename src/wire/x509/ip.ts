/** IP addresses between text and the 4 or 16 bytes of a subjectAltName. */
import { DecodeError } from '../decode-error.ts'

/** Text to bytes: dotted IPv4, or IPv6 as RFC 4291 §2.2 writes it. */
export function parseIp(text: string): Uint8Array {
  const bad = () => new DecodeError('IP address', 0, `"${text}" is not one`)
  if (!text.includes(':')) return parse4(text) ?? fail(bad())
  const halves = text.split('::')
  if (halves.length > 2) throw bad()
  const [head, tail] = halves.map((half) => groups(half) ?? fail(bad())) as [number[], number[]?]
  const missing = 16 - head.length - (tail?.length ?? 0)
  if (tail ? missing < 2 : missing !== 0) throw bad()
  return Uint8Array.from([...head, ...new Array(missing).fill(0), ...(tail ?? [])])
}

function fail(error: Error): never {
  throw error
}

function parse4(text: string): Uint8Array | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)) return undefined
  return Uint8Array.from(parts.map(Number))
}

function groups(half: string): number[] | undefined {
  if (half === '') return []
  const bytes: number[] = []
  const parts = half.split(':')
  for (const [i, part] of parts.entries()) {
    const four = i === parts.length - 1 && part.includes('.') ? parse4(part) : undefined
    if (four) bytes.push(...four)
    else if (/^[0-9a-fA-F]{1,4}$/.test(part)) bytes.push(Number.parseInt(part, 16) >> 8, Number.parseInt(part, 16) & 255)
    else return undefined
  }
  return bytes.length <= 16 ? bytes : undefined
}

/** Bytes to text; IPv6 in the form of RFC 5952. */
export function formatIp(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  const words = Array.from({ length: 8 }, (_, i) => ((bytes[2 * i]! << 8) | bytes[2 * i + 1]!).toString(16))
  let best = { start: -1, length: 1 }
  for (let start = 0; start < 8; start++) {
    let length = 0
    while (words[start + length] === '0') length++
    if (length > best.length) best = { start, length }
  }
  if (best.start < 0) return words.join(':')
  return `${words.slice(0, best.start).join(':')}::${words.slice(best.start + best.length).join(':')}`
}
