/**
 * What the network stack leaves to the driver of a link: a packet of the kernel with a virtio_net_hdr becomes packets as they are sent. Large
 * TCP packets are split (TCP segmentation offload), partial checksums are completed.
 */
import { complement, fold, pseudoSum, putU16, u16At, type WordSums } from './checksum.ts'
import { IPPROTO_TCP, ip4At, ip6At, tcpAt, tcpFlag } from './tcp-header.ts'
import { readVirtioHeader, segmentation, type VirtioHeader, virtioHeaderLength } from './virtio-header.ts'

/** Where packets go, in the buffer from which they come. */
export interface Outgoing {
  /** An offset with room for a packet of a length, outside of the packet that is split. */
  place(length: number): number
  /** Takes the packet that was written to the last place. */
  take(at: number, length: number): void
}

/** Splits what was read from a link, `length` bytes at an offset: the header and a packet. What is malformed is dropped. */
export function splitPacket(buffer: Uint8Array, at: number, length: number, sums: WordSums, out: Outgoing): void {
  const size = length - virtioHeaderLength
  if (size <= 0 || at + length > buffer.length) return
  const header = readVirtioHeader(buffer, at)
  const packet = at + virtioHeaderLength
  if (header.segmentation !== segmentation.none) {
    splitTcp(buffer, packet, size, header, sums, out)
    return
  }
  if (header.partialChecksum && !completeChecksum(buffer, packet, size, header, sums)) return
  const to = out.place(size)
  buffer.copyWithin(to, packet, packet + size)
  out.take(to, size)
}

/** Replaces the sum of the pseudo-header by the checksum; false when the header names no place in the packet. */
function completeChecksum(
  buffer: Uint8Array,
  packet: number,
  size: number,
  { checksumStart, checksumOffset }: VirtioHeader,
  sums: WordSums,
): boolean {
  if (checksumStart + checksumOffset + 2 > size) return false
  const start = packet + checksumStart
  // UDP has no checksum of zero (RFC 768); elsewhere both values are the same.
  putU16(buffer, start + checksumOffset, complement(sums.sum(buffer, start, packet + size)) || 0xffff)
  return true
}

/** The version of an IP packet with TCP in it, and where that starts; undefined for any other. */
function tcpStart(buffer: Uint8Array, packet: number, size: number, header: VirtioHeader): { version: 4 | 6; start: number } | undefined {
  const version = (buffer[packet] ?? 0) >> 4
  if (version === 4 && header.segmentation === segmentation.tcp4) {
    const start = ((buffer[packet] ?? 0) & 15) * 4
    if (start < ip4At.length || start + tcpAt.length > size || buffer[packet + ip4At.protocol] !== IPPROTO_TCP) return undefined
    return { version, start }
  }
  if (version !== 6 || header.segmentation !== segmentation.tcp6) return undefined
  if (header.partialChecksum) {
    // There may be extension headers before it.
    const start = header.checksumStart
    return start >= ip6At.length && start + tcpAt.length <= size ? { version, start } : undefined
  }
  if (ip6At.length + tcpAt.length > size || buffer[packet + ip6At.nextHeader] !== IPPROTO_TCP) return undefined
  return { version, start: ip6At.length }
}

function splitTcp(buffer: Uint8Array, packet: number, size: number, header: VirtioHeader, sums: WordSums, out: Outgoing): void {
  const found = tcpStart(buffer, packet, size, header)
  if (!found || header.segment === 0) return
  const { version, start } = found
  const tcp = packet + start
  const tcpLength = ((buffer[tcp + tcpAt.dataOffset] ?? 0) >> 4) * 4
  const headers = start + tcpLength
  if (tcpLength < tcpAt.length || headers > size) return
  // A partial checksum counts the addresses and the length of the whole; with a routing header, only the kernel knows the address.
  const whole = header.partialChecksum ? u16At(buffer, tcp + tcpAt.checksum) : pseudoSum(sums, buffer, packet, version, size - start)
  const withoutLength = fold(whole + complement(size - start))
  const flags = buffer[tcp + tcpAt.flags] ?? 0
  const sequence = new DataView(buffer.buffer, buffer.byteOffset).getUint32(tcp + tcpAt.sequence)
  const id = u16At(buffer, packet + ip4At.id)
  for (let done = 0, index = 0; done < size - headers || done === 0; done += header.segment, index++) {
    const payload = Math.min(header.segment, size - headers - done)
    const to = out.place(headers + payload)
    buffer.copyWithin(to, packet, packet + headers)
    buffer.copyWithin(to + headers, packet + headers + done, packet + headers + done + payload)
    setLength(buffer, to, version, start, headers + payload, (id + index) & 0xffff, sums)
    const segment = to + start
    putU16(buffer, segment + tcpAt.sequence, ((sequence + done) >>> 16) & 0xffff)
    putU16(buffer, segment + tcpAt.sequence + 2, (sequence + done) & 0xffff)
    const last = done + payload === size - headers
    buffer[segment + tcpAt.flags] = flags & (last ? 0xff : ~(tcpFlag.fin | tcpFlag.push)) & (index === 0 ? 0xff : ~tcpFlag.reduced)
    putU16(buffer, segment + tcpAt.checksum, fold(withoutLength + tcpLength + payload))
    putU16(buffer, segment + tcpAt.checksum, complement(sums.sum(buffer, segment, to + headers + payload)))
    out.take(to, headers + payload)
  }
}

/** Writes the fields of an IP header that depend on the length of the packet; `start` is the header's length. */
export function setLength(
  buffer: Uint8Array,
  packet: number,
  version: 4 | 6,
  start: number,
  length: number,
  id: number,
  sums: WordSums,
): void {
  if (version === 6) {
    putU16(buffer, packet + ip6At.payloadLength, length - ip6At.length)
    return
  }
  putU16(buffer, packet + ip4At.totalLength, length)
  putU16(buffer, packet + ip4At.id, id)
  putU16(buffer, packet + ip4At.checksum, 0)
  putU16(buffer, packet + ip4At.checksum, complement(sums.sum(buffer, packet, packet + start)))
}
