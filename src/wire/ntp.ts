/**
 * Packets of the Network Time Protocol, version 4 (RFC 5905 section 7.3), between a simple client and a server. Times are the
 * 64-bit numbers of the protocol, seconds of an era and their fraction: differences are correct across the end of an era, as
 * long as they are less than 68 years.
 */
import { DecodeError } from './decode-error.ts'

/** A packet header; extensions and digests after it are ignored. */
export interface NtpPacket {
  /** Leap indicator: 0 none, 1 and 2 a second is inserted or deleted today, 3 the clock is not synchronized. */
  leap: number
  version: number
  /** 3 client, 4 server. */
  mode: number
  /** Stratum: 1 has a reference clock, 2 to 15 are synchronized over NTP, 0 is a kiss-o'-death with its code in `reference`, 16 is unsynchronized. */
  stratum: number
  /** Poll interval and precision of the clock in seconds, both as a power of two. */
  poll: number
  precision: number
  /** Root delay and root dispersion in seconds. */
  rootDelay: number
  rootDispersion: number
  /** Reference id: four letters or an address. */
  reference: Uint8Array
  referenceTime: bigint
  originTime: bigint
  receiveTime: bigint
  transmitTime: bigint
}

/** Values of `mode`. */
export const ntpMode = { client: 3, server: 4 } as const

const length = 48
/** Seconds from 1900, where NTP's first era begins, to 1970. */
const epoch = 2_208_988_800n
const second = 1_000_000_000n

/** Encodes a packet; omitted fields are zero. */
export function writeNtp(packet: Partial<NtpPacket>): Uint8Array {
  const bytes = Buffer.alloc(length)
  bytes[0] = ((packet.leap ?? 0) << 6) | ((packet.version ?? 4) << 3) | (packet.mode ?? ntpMode.client)
  bytes[1] = packet.stratum ?? 0
  bytes.writeInt8(packet.poll ?? 0, 2)
  bytes.writeInt8(packet.precision ?? 0, 3)
  bytes.writeUInt32BE(Math.round((packet.rootDelay ?? 0) * 65_536), 4)
  bytes.writeUInt32BE(Math.round((packet.rootDispersion ?? 0) * 65_536), 8)
  bytes.set((packet.reference ?? []).slice(0, 4), 12)
  bytes.writeBigUInt64BE(packet.referenceTime ?? 0n, 16)
  bytes.writeBigUInt64BE(packet.originTime ?? 0n, 24)
  bytes.writeBigUInt64BE(packet.receiveTime ?? 0n, 32)
  bytes.writeBigUInt64BE(packet.transmitTime ?? 0n, 40)
  return bytes
}

/** Decodes a packet. Throws DecodeError when it is too short. */
export function readNtp(packet: Uint8Array): NtpPacket {
  if (packet.length < length) throw new DecodeError('NTP packet', packet.length, `${packet.length} bytes, want at least ${length}`)
  const bytes = Buffer.from(packet.buffer, packet.byteOffset, length)
  const [flags = 0, stratum = 0] = bytes
  return {
    leap: flags >> 6,
    version: (flags >> 3) & 7,
    mode: flags & 7,
    stratum,
    poll: bytes.readInt8(2),
    precision: bytes.readInt8(3),
    rootDelay: bytes.readUInt32BE(4) / 65_536,
    rootDispersion: bytes.readUInt32BE(8) / 65_536,
    reference: Uint8Array.from(bytes.subarray(12, 16)),
    referenceTime: bytes.readBigUInt64BE(16),
    originTime: bytes.readBigUInt64BE(24),
    receiveTime: bytes.readBigUInt64BE(32),
    transmitTime: bytes.readBigUInt64BE(40),
  }
}

/** Converts nanoseconds since 1970 to NTP time, in whichever era it falls. */
export function toNtpTime(nanoseconds: bigint): bigint {
  const seconds = nanoseconds / second - (nanoseconds % second < 0n ? 1n : 0n)
  const fraction = ((nanoseconds - seconds * second) << 32n) / second
  return BigInt.asUintN(64, ((seconds + epoch) << 32n) | fraction)
}

/** Nanoseconds from one NTP time to another, negative when the second is earlier. */
export function ntpDifference(from: bigint, to: bigint): bigint {
  const difference = BigInt.asIntN(64, to - from)
  return (difference * second) >> 32n
}

/** Offset of the server's clock and round-trip delay, in nanoseconds (RFC 5905 section 8). */
export function clockOffset(times: { sent: bigint; received: bigint; transmitted: bigint; arrived: bigint }): {
  offset: bigint
  delay: bigint
} {
  const there = ntpDifference(times.sent, times.received)
  const back = ntpDifference(times.arrived, times.transmitted)
  const delay = there - back
  return { offset: (there + back) / 2n, delay: delay < 0n ? 0n : delay }
}
