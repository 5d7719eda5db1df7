/** The four messages of WireGuard (WireGuard: Next Generation Kernel Network Tunnel, section 5.4): little-endian, of fixed layout. */

/** The first byte of a message; the three bytes after it are zero. */
export const messageType = { initiation: 1, response: 2, cookieReply: 3, transport: 4 } as const

/** Lengths in bytes; a transport message has its payload and tag after its header. */
export const messageLength = { initiation: 148, response: 92, cookieReply: 64, transportHeader: 16 } as const

/** Length of an authentication tag, and of mac1 and mac2. */
export const tagLength = 16
export const macLength = 16

/** Where the fields of a message are. */
export const initiationAt = { sender: 4, ephemeral: 8, static: 40, timestamp: 88, mac1: 116, mac2: 132 } as const
export const responseAt = { sender: 4, receiver: 8, ephemeral: 12, empty: 44, mac1: 60, mac2: 76 } as const
export const cookieReplyAt = { receiver: 4, nonce: 8, cookie: 32 } as const
export const transportAt = { receiver: 4, counter: 8, payload: 16 } as const

/** The type of a datagram whose length fits it; undefined for any other. */
export function typeOf(datagram: Uint8Array): number | undefined {
  if (datagram.length < messageLength.transportHeader || datagram[1] !== 0 || datagram[2] !== 0 || datagram[3] !== 0) return undefined
  const type = datagram[0]
  switch (type) {
    case messageType.initiation:
      return datagram.length === messageLength.initiation ? type : undefined
    case messageType.response:
      return datagram.length === messageLength.response ? type : undefined
    case messageType.cookieReply:
      return datagram.length === messageLength.cookieReply ? type : undefined
    case messageType.transport:
      return datagram.length >= messageLength.transportHeader + tagLength ? type : undefined
    default:
      return undefined
  }
}

/** Reads an unsigned 32-bit number. */
export const readU32 = (bytes: Uint8Array, at: number): number =>
  ((bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24)) >>> 0

/** Writes an unsigned 32-bit number. */
export function writeU32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value & 0xff
  bytes[at + 1] = (value >>> 8) & 0xff
  bytes[at + 2] = (value >>> 16) & 0xff
  bytes[at + 3] = value >>> 24
}

/** Reads a counter; one of 2^53 or more is Infinity, which is past every limit. */
export function readCounter(bytes: Uint8Array, at: number): number {
  const high = readU32(bytes, at + 4)
  return high < 1 << 21 ? high * 2 ** 32 + readU32(bytes, at) : Number.POSITIVE_INFINITY
}

/** Writes a counter below 2^53. */
export function writeCounter(bytes: Uint8Array, at: number, value: number): void {
  writeU32(bytes, at, value >>> 0)
  writeU32(bytes, at + 4, Math.floor(value / 2 ** 32))
}
