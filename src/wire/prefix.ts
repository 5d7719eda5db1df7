/** Networks and addresses as strings, compared by their bits; both families. */
import { DecodeError } from './decode-error.ts'
import { formatIp, parseIp } from './ip.ts'

/** A network: an address and the length of its prefix. */
export interface Prefix {
  bytes: Uint8Array
  bits: number
}

/** Parses a network such as `10.0.0.0/8`; undefined when it is malformed or has no length. */
export function tryPrefix(text: string): Prefix | undefined {
  const [, ip = '', length = ''] = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? []
  const bytes = parseIp(ip)
  return bytes && Number(length) <= bytes.length * 8 ? { bytes, bits: Number(length) } : undefined
}

/** Parses `10.0.0.0/8`, or a single address as a network of its own. Throws DecodeError. */
export function parsePrefix(text: string): Prefix {
  const bytes = text.includes('/') ? undefined : parseIp(text)
  const prefix = bytes ? { bytes, bits: bytes.length * 8 } : tryPrefix(text)
  if (!prefix) throw new DecodeError('network', 0, `"${text}" is not one`)
  return prefix
}

/** Whether an address is in a network; a prefix length of the address is ignored. */
export function containsAddress({ bytes, bits }: Prefix, address: string): boolean {
  const other = parsePrefix(address).bytes
  if (other.length !== bytes.length) return false
  const whole = bits >> 3
  for (let i = 0; i < whole; i++) if (bytes[i] !== other[i]) return false
  const mask = (0xff00 >> (bits & 7)) & 0xff
  return mask === 0 || ((bytes[whole] ?? 0) & mask) === ((other[whole] ?? 0) & mask)
}

/** The n-th address of a network, 0 being the network address. Throws DecodeError when it is outside of the network. */
export function nthAddress(prefix: Prefix, n: number): string {
  const size = prefix.bytes.length * 8
  const low = BigInt(size - prefix.bits)
  if (BigInt(n) >> low !== 0n) throw new DecodeError('network', 0, `it has no address number ${n}`)
  let value = prefix.bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n)
  value = ((value >> low) << low) + BigInt(n)
  const bytes = new Uint8Array(prefix.bytes.length)
  for (let i = bytes.length - 1; i >= 0; i--, value >>= 8n) bytes[i] = Number(value & 0xffn)
  return formatIp(bytes)
}

/** The address of `10.0.0.1/24`. */
export const addressOnly = (text: string): string => text.split('/')[0] ?? text

/** Whether an address, with or without a prefix length, is IPv6. */
export const isIPv6 = (text: string): boolean => text.includes(':')

/** The address family of an address or network, as resources name it. */
export const familyOf = (text: string): 'inet4' | 'inet6' => (isIPv6(text) ? 'inet6' : 'inet4')

/**
 * Whether an address, with or without a prefix length, is one of a management network (SideroLink): a unique local address
 * (RFC 4193) whose eighth byte is 3.
 */
export function isManagementAddress(text: string): boolean {
  const bytes = parseIp(addressOnly(text))
  return bytes?.length === 16 && bytes[0] === 0xfd && bytes[7] === 3
}

/** The network of a single address: `10.0.0.1/32`. */
export const hostPrefix = (address: string): string => `${addressOnly(address)}/${isIPv6(address) ? 128 : 32}`

/** Prefix length of a netmask; undefined where its bits are not contiguous. */
export function maskLength(mask: Uint8Array): number | undefined {
  const bits = Array.from(mask, (byte) => byte.toString(2).padStart(8, '0')).join('')
  return /^1*0*$/.test(bits) ? bits.lastIndexOf('1') + 1 : undefined
}

/** A network in text form. */
export const formatPrefix = ({ bytes, bits }: Prefix): string => `${formatIp(bytes)}/${bits}`

/** The same network with its host bits cleared. */
export function masked({ bytes, bits }: Prefix): Prefix {
  const clear = (byte: number, index: number) => byte & (0xff00 >> Math.min(8, Math.max(0, bits - index * 8)))
  return { bytes: bytes.map(clear), bits }
}

/** Whether two networks share an address. */
export function overlaps(a: Prefix, b: Prefix): boolean {
  const [wide, narrow] = a.bits <= b.bits ? [a, b] : [b, a]
  return containsAddress(wide, formatIp(narrow.bytes))
}

/** Whether subnets select an address: `!` excludes, in any position; with exclusions only, everything else is included. */
export function selects(subnets: readonly string[], address: string): boolean {
  const holds = (subnet: string) => containsAddress(parsePrefix(subnet), address)
  const [out, into] = [subnets.filter((subnet) => subnet.startsWith('!')), subnets.filter((subnet) => !subnet.startsWith('!'))]
  return !out.some((subnet) => holds(subnet.slice(1))) && (into.length === 0 || into.some(holds))
}
