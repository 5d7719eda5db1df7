/** Where the fields of IP and TCP headers are (RFC 791, RFC 8200, RFC 9293), in bytes. */

export const ip4At = { tos: 1, totalLength: 2, id: 4, fragment: 6, ttl: 8, protocol: 9, checksum: 10, source: 12, length: 20 } as const
export const ip6At = { payloadLength: 4, nextHeader: 6, hopLimit: 7, source: 8, length: 40 } as const
export const tcpAt = { sequence: 4, ack: 8, dataOffset: 12, flags: 13, window: 14, checksum: 16, urgent: 18, length: 20 } as const
export const tcpFlag = { fin: 0x01, push: 0x08, ack: 0x10, reduced: 0x80 } as const
export const IPPROTO_TCP = 6
export const maxPacket = 0xffff
