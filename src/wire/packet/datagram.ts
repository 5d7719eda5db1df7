/** UDP in IPv4 (RFC 791, RFC 768) and IPv6 (RFC 8200), for senders without an address. */

import { DecodeError } from '../decode-error.ts'
import { formatIp, parseIp } from '../ip.ts'
import { isIPv6 } from '../prefix.ts'

/** A datagram with its source and destination. */
export interface Datagram {
  source: string
  destination: string
  sourcePort: number
  destinationPort: number
  payload: Uint8Array
}

const IPPROTO_UDP = 17
const ip4Header = 20
const ip6Header = 40
const udpHeader = 8

/** The ones' complement sum of RFC 1071. */
export function internetChecksum(...parts: readonly Uint8Array[]): number {
  let sum = 0
  for (const part of parts) {
    for (let at = 0; at < part.length; at += 2) sum += ((part[at] ?? 0) << 8) | (part[at + 1] ?? 0)
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
  }
  return ~sum & 0xffff
}

function addressOf(text: string, length: number): Uint8Array {
  const bytes = parseIp(text)
  if (bytes?.length !== length) throw new RangeError(`"${text}" is no IPv${length === 4 ? 4 : 6} address`)
  return bytes
}

function udp(source: Uint8Array, destination: Uint8Array, { sourcePort, destinationPort, payload }: Datagram): Buffer {
  const bytes = Buffer.alloc(udpHeader + payload.length)
  bytes.writeUInt16BE(sourcePort, 0)
  bytes.writeUInt16BE(destinationPort, 2)
  bytes.writeUInt16BE(bytes.length, 4)
  bytes.set(payload, udpHeader)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  const pseudo = Buffer.concat([source, destination, length, Buffer.from([0, 0, 0, IPPROTO_UDP])])
  bytes.writeUInt16BE(internetChecksum(pseudo, bytes) || 0xffff, 6)
  return bytes
}

/** Encodes an IP packet with a datagram; the addresses determine the family. */
export function writeDatagram(datagram: Datagram, { hops = 64 } = {}): Uint8Array {
  const six = isIPv6(datagram.destination)
  const source = addressOf(datagram.source, six ? 16 : 4)
  const destination = addressOf(datagram.destination, six ? 16 : 4)
  const body = udp(source, destination, datagram)
  const header = Buffer.alloc(six ? ip6Header : ip4Header)
  if (six) {
    header.writeUInt8(0x60, 0)
    header.writeUInt16BE(body.length, 4)
    header.set([IPPROTO_UDP, hops], 6)
    header.set(source, 8)
    header.set(destination, 24)
  } else {
    header.set([0x45, 0x10], 0) // 20 bytes of header; low delay
    header.writeUInt16BE(ip4Header + body.length, 2)
    header.set([hops, IPPROTO_UDP], 8)
    header.set(source, 12)
    header.set(destination, 16)
    header.writeUInt16BE(internetChecksum(header), 10)
  }
  return Buffer.concat([header, body])
}

/** Decodes an IP packet with a complete datagram. Throws DecodeError for any other. */
export function readDatagram(bytes: Uint8Array): Datagram {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const [first = 0] = bytes
  const version = first >> 4
  if (version !== 4 && version !== 6) throw new DecodeError('datagram', 0, `IP version ${version}`)
  const least = version === 4 ? ip4Header : ip6Header
  if (bytes.length < least + udpHeader) throw new DecodeError('datagram', bytes.length, 'too short')
  const header = version === 4 ? (first & 15) * 4 : ip6Header
  const end = version === 4 ? view.getUint16(2) : ip6Header + view.getUint16(4)
  if (header < least || end > bytes.length || end < header + udpHeader)
    throw new DecodeError('datagram', 2, `length ${end} of ${bytes.length} bytes`)
  if (view.getUint8(version === 4 ? 9 : 6) !== IPPROTO_UDP) throw new DecodeError('datagram', version === 4 ? 9 : 6, 'not UDP')
  if (version === 4 && (view.getUint16(6) & 0x3fff) !== 0) throw new DecodeError('datagram', 6, 'a fragment')
  const length = view.getUint16(header + 4)
  if (length < udpHeader || header + length > end) throw new DecodeError('datagram', header + 4, `UDP length ${length}`)
  const [from, to] = version === 4 ? [12, 16] : [8, 24]
  return {
    source: formatIp(bytes.subarray(from, to)),
    destination: formatIp(bytes.subarray(to, to + (to - from))),
    sourcePort: view.getUint16(header),
    destinationPort: view.getUint16(header + 2),
    payload: bytes.subarray(header + udpHeader, header + length),
  }
}
