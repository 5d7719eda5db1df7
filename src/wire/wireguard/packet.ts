/** What WireGuard reads of IP packets (RFC 791, RFC 8200): their length and their addresses. */
import { u16At } from '../packet/checksum.ts'
import { ip4At, ip6At } from '../packet/tcp-header.ts'

/** Where the source address of a packet is; the destination follows it. Undefined for what is no IP packet. */
export function sourceAt(buffer: Uint8Array, at: number, length: number): { at: number; length: 4 | 16 } | undefined {
  const version = (buffer[at] ?? 0) >> 4
  if (version === 4 && length >= ip4At.length) return { at: at + ip4At.source, length: 4 }
  if (version === 6 && length >= ip6At.length) return { at: at + ip6At.source, length: 16 }
  return undefined
}

/** The length that a packet of at most `length` bytes states, without padding; undefined when it is longer, or is no IP packet. */
export function ipPacketLength(buffer: Uint8Array, at: number, length: number): number | undefined {
  const version = (buffer[at] ?? 0) >> 4
  if (version === 4 && length >= ip4At.length) {
    const stated = u16At(buffer, at + ip4At.totalLength)
    return stated >= ip4At.length && stated <= length ? stated : undefined
  }
  if (version === 6 && length >= ip6At.length) {
    const stated = u16At(buffer, at + ip6At.payloadLength) + ip6At.length
    return stated <= length ? stated : undefined
  }
  return undefined
}

/** The length of a packet with its padding: a multiple of 16 bytes (WireGuard, section 5.4.6), but not above the MTU unless that is 0. */
export function paddedLength(length: number, mtu: number): number {
  const padded = (length + 15) & ~15
  return mtu > 0 && padded > mtu ? Math.max(length, mtu) : padded
}
