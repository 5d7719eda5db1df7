/**
 * Packets of the Network Time Protocol, version 4 (RFC 5905 section 7.3), as a simple client and server exchange them.
 * Moments are kept as the 64-bit numbers of the wire, seconds of an era and their fraction: differences between two of
 * them are right also when one is before and one after an era's end, as long as they are less than 68 years apart.
 */
import { DecodeError } from './decode-error.ts'

/** A packet's header; what follows it (extensions, a digest) is left alone. */
export interface NtpPacket {
  /** 0 none, 1 and 2 a second is added or left out today, 3 the clock is not set. */
  leap: number
  version: number
  /** 3 client, 4 server. */
  mode: number
  /** 1 has a clock of its own, 2 to 15 asks others, 0 refuses and says why in `reference`, 16 is not set. */
  stratum: number
  /** Seconds between questions, and the clock's precision in seconds, both as a power of two. */
  poll: number
  precision: number
  /** Seconds to the clock that all ask in the end, and how far off that may be. */
  rootDelay: number
  rootDispersion: number
  /** Four letters or an address. */
  reference: Uint8Array
  referenceTime: bigint
  originTime: bigint
  receiveTime: bigint
  transmitTime: bigint
}

/** What `mode` says. */
export const ntpMode = { client: 3, server: 4 } as const

const length = 48
/** Seconds from 1900, where NTP's first era begins, to 1970. */
const epoch = 2_208_988_800n
const second = 1_000_000_000n

/** Writes a packet; what is left out is zero. */
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

/** Reads a packet. Throws DecodeError when it is too short. */
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

/** Nanoseconds since 1970 as a moment of NTP, whichever era it falls in. */
export function toNtpTime(nanoseconds: bigint): bigint {
  const seconds = nanoseconds / second - (nanoseconds % second < 0n ? 1n : 0n)
  const fraction = ((nanoseconds - seconds * second) << 32n) / second
  return BigInt.asUintN(64, ((seconds + epoch) << 32n) | fraction)
}

/** Nanoseconds from one moment to another, negative when the second is earlier. */
export function ntpDifference(from: bigint, to: bigint): bigint {
  const difference = BigInt.asIntN(64, to - from)
  return (difference * second) >> 32n
}

/** How far a server's clock is ahead of ours, and how long the exchange took on the way, in nanoseconds (RFC 5905 section 8). */
export function clockOffset(times: { sent: bigint; received: bigint; transmitted: bigint; arrived: bigint }): {
  offset: bigint
  delay: bigint
} {
  const there = ntpDifference(times.sent, times.received)
  const back = ntpDifference(times.arrived, times.transmitted)
  const delay = there - back
  return { offset: (there + back) / 2n, delay: delay < 0n ? 0n : delay }
}
