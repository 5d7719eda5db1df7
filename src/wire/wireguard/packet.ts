/** What WireGuard reads of IP packets (RFC 791, RFC 8200): their length and their addresses. */

const v4 = { headerLength: 20, totalLength: 2, source: 12 } as const
const v6 = { headerLength: 40, payloadLength: 4, source: 8 } as const

/** Where the source address of a packet is; the destination follows it. Undefined for what is no IP packet. */
export function sourceAt(buffer: Uint8Array, at: number, length: number): { at: number; length: 4 | 16 } | undefined {
  const version = (buffer[at] ?? 0) >> 4
  if (version === 4 && length >= v4.headerLength) return { at: at + v4.source, length: 4 }
  if (version === 6 && length >= v6.headerLength) return { at: at + v6.source, length: 16 }
  return undefined
}

/** The length that a packet of at most `length` bytes states, without padding; undefined when it is longer, or is no IP packet. */
export function ipPacketLength(buffer: Uint8Array, at: number, length: number): number | undefined {
  const version = (buffer[at] ?? 0) >> 4
  const u16 = (offset: number) => ((buffer[at + offset] ?? 0) << 8) | (buffer[at + offset + 1] ?? 0)
  if (version === 4 && length >= v4.headerLength) {
    const stated = u16(v4.totalLength)
    return stated >= v4.headerLength && stated <= length ? stated : undefined
  }
  if (version === 6 && length >= v6.headerLength) {
    const stated = u16(v6.payloadLength) + v6.headerLength
    return stated <= length ? stated : undefined
  }
  return undefined
}

/** The length of a packet with its padding: a multiple of 16 bytes (WireGuard, section 5.4.6), but not above the MTU unless that is 0. */
export function paddedLength(length: number, mtu: number): number {
  const padded = (length + 15) & ~15
  return mtu > 0 && padded > mtu ? Math.max(length, mtu) : padded
}
