/** What a packet of a TUN link lacks (struct virtio_net_hdr of linux/virtio_net.h, 10 bytes in the processor's order): checksum, segmentation. */

/** Length in bytes. */
export const virtioHeaderLength = 10

/** How the packet will be split. */
export const segmentation = { none: 0, tcp4: 1, tcp6: 4 } as const

/** The header of a packet. */
export interface VirtioHeader {
  /** Whether the checksum holds only the sum of the pseudo-header. */
  readonly partialChecksum: boolean
  /** A value of `segmentation`, or one that was not agreed on. */
  readonly segmentation: number
  /** Length of all headers of the packet in bytes; the kernel's may be wrong. */
  readonly headerLength: number
  /** Bytes of payload in each segment but the last. */
  readonly segment: number
  /** Where the checksummed bytes start, and where behind that the checksum is. */
  readonly checksumStart: number
  readonly checksumOffset: number
}

const needsChecksum = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM
const at = { flags: 0, segmentation: 1, headerLength: 2, segment: 4, checksumStart: 6, checksumOffset: 8 } as const

const u16 = (bytes: Uint8Array, offset: number): number => (bytes[offset] ?? 0) | ((bytes[offset + 1] ?? 0) << 8)

/** Reads the header at an offset; bytes that are missing are zero. */
export function readVirtioHeader(bytes: Uint8Array, from: number): VirtioHeader {
  return {
    partialChecksum: ((bytes[from + at.flags] ?? 0) & needsChecksum) !== 0,
    segmentation: bytes[from + at.segmentation] ?? 0,
    headerLength: u16(bytes, from + at.headerLength),
    segment: u16(bytes, from + at.segment),
    checksumStart: u16(bytes, from + at.checksumStart),
    checksumOffset: u16(bytes, from + at.checksumOffset),
  }
}

/** Writes a header; undefined for a packet that lacks nothing. */
export function writeVirtioHeader(bytes: Uint8Array, header: VirtioHeader | undefined): void {
  bytes.fill(0, 0, virtioHeaderLength)
  if (!header) return
  const view = new DataView(bytes.buffer, bytes.byteOffset, virtioHeaderLength)
  view.setUint8(at.flags, header.partialChecksum ? needsChecksum : 0)
  view.setUint8(at.segmentation, header.segmentation)
  view.setUint16(at.headerLength, header.headerLength, true)
  view.setUint16(at.segment, header.segment, true)
  view.setUint16(at.checksumStart, header.checksumStart, true)
  view.setUint16(at.checksumOffset, header.checksumOffset, true)
}
