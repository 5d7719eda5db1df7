/**
 * Merges TCP packets of one flow that follow one another into large ones, which the network stack takes at once, as Linux does for
 * packets of a network device (generic receive offload, net/ipv4/tcp_offload.c). The large packet can be split into the same ones again.
 */
import { fold, pseudoSum, putU16, u16At, WordSums } from './checksum.ts'
import { setLength } from './split.ts'
import { IPPROTO_TCP, ip4At, ip6At, maxPacket, tcpAt, tcpFlag } from './tcp-header.ts'
import { segmentation, type VirtioHeader } from './virtio-header.ts'

/** Packets in one large one, and flows that are merged at a time. */
export const maxPieces = 128
const maxFlows = 16

/** Part of a packet. */
export interface Piece {
  readonly buffer: Uint8Array
  readonly at: number
  readonly length: number
}

/** A packet in pieces, which follow one another. */
export interface Merged {
  readonly header: VirtioHeader | undefined
  readonly pieces: readonly Piece[]
}

type Version = 4 | 6

/** A packet that others may be appended to. */
interface Group {
  /** The first packet. */
  readonly first: Piece
  readonly pieces: Piece[]
  /** 0 for what is no TCP. */
  readonly start: number
  readonly headers: number
  /** Bytes of payload of the first packet. */
  readonly segment: number
  /** Length of the whole. */
  total: number
  /** The sequence number behind its end. */
  next: number
  /** The identification of its last IPv4 packet. */
  id: number
  pushed: boolean
}

/** Packets of one flush. Their bytes must stay as they are until then. */
export class PacketMerger {
  readonly #sums = new WordSums()
  #groups: Group[] = []
  /** Groups that may grow, one of a flow. */
  #open: Group[] = []

  /** Adds an IP packet, `length` bytes at an offset: the length that its header states. */
  add(buffer: Uint8Array, at: number, length: number): void {
    const piece = { buffer, at, length }
    const start = tcpStart(buffer, at, length)
    if (start === 0) {
      this.#groups.push(newGroup(piece, 0, 0))
      return
    }
    const tcp = at + start
    const headers = start + ((buffer[tcp + tcpAt.dataOffset] ?? 0) >> 4) * 4
    const index = this.#open.findIndex((group) => sameFlow(group, piece, start))
    const group = this.#open[index]
    const flags = buffer[tcp + tcpAt.flags] ?? 0
    const mergeable = (flags & ~tcpFlag.push) === tcpFlag.ack && headers < length && (buffer[tcp + tcpAt.dataOffset] ?? 0) % 16 === 0
    if (group && mergeable && headers === group.headers && this.#append(group, piece)) {
      if (group.pushed || length - headers < group.segment) this.#open.splice(index, 1)
      return
    }
    if (group) this.#open.splice(index, 1)
    const added = newGroup(piece, start, headers)
    this.#groups.push(added)
    if (!mergeable || added.pushed) return
    if (this.#open.length === maxFlows) this.#open.shift()
    this.#open.push(added)
  }

  /** Hands over the packets; those of one flow are in order. */
  flush(take: (packet: Merged) => void): void {
    for (const group of this.#groups) {
      if (group.pieces.length === 1) take({ header: undefined, pieces: group.pieces })
      else take({ header: this.#finish(group), pieces: group.pieces })
    }
    this.#groups = []
    this.#open = []
  }

  /** Appends a packet of the same flow; false when it does not follow, or differs in more than a large packet can state. */
  #append(group: Group, { buffer, at, length }: Piece): boolean {
    const { start, headers, first } = group
    const payload = length - headers
    const fits = payload <= group.segment && group.total + payload <= maxPacket && group.pieces.length < maxPieces
    if (!fits || sequenceOf(buffer, at + start) !== group.next || !sameHeaders(group, buffer, at)) return false
    if (group.pieces.length === 1 && !this.#valid(first, start)) return false
    if (!this.#valid({ buffer, at, length }, start)) return false
    group.pieces.push({ buffer, at: at + headers, length: payload })
    group.total += payload
    group.next = (group.next + payload) >>> 0
    group.id = u16At(buffer, at + ip4At.id)
    group.pushed = isPushed(buffer, at + start)
    return true
  }

  /** Whether the checksums of IPv4 and TCP are right. */
  #valid({ buffer, at, length }: Piece, start: number): boolean {
    const version = versionOf(start)
    if (version === 4 && this.#sums.sum(buffer, at, at + start) !== 0xffff) return false
    const sum = pseudoSum(this.#sums, buffer, at, version, length - start) + this.#sums.sum(buffer, at + start, at + length)
    return fold(sum) === 0xffff
  }

  /** Makes the headers of the first packet those of the whole. */
  #finish({ first: { buffer, at }, start, headers, segment, total, pushed }: Group): VirtioHeader {
    const version = versionOf(start)
    setLength(buffer, at, version, start, total, u16At(buffer, at + ip4At.id), this.#sums)
    if (pushed) buffer[at + start + tcpAt.flags] = tcpFlag.ack | tcpFlag.push
    putU16(buffer, at + start + tcpAt.checksum, pseudoSum(this.#sums, buffer, at, version, total - start))
    return {
      partialChecksum: true,
      segmentation: version === 4 ? segmentation.tcp4 : segmentation.tcp6,
      headerLength: headers,
      segment,
      checksumStart: start,
      checksumOffset: tcpAt.checksum,
    }
  }
}

const versionOf = (start: number): Version => (start === ip4At.length ? 4 : 6)

function newGroup(first: Piece, start: number, headers: number): Group {
  const { buffer, at, length } = first
  const segment = length - headers
  const next = start === 0 ? 0 : (sequenceOf(buffer, at + start) + segment) >>> 0
  const pushed = start > 0 && isPushed(buffer, at + start)
  return { first, pieces: [first], start, headers, segment, total: length, next, id: u16At(buffer, at + ip4At.id), pushed }
}

const isPushed = (buffer: Uint8Array, tcp: number): boolean => ((buffer[tcp + tcpAt.flags] ?? 0) & tcpFlag.push) !== 0
const sequenceOf = (buffer: Uint8Array, tcp: number): number =>
  u16At(buffer, tcp + tcpAt.sequence) * 0x10000 + u16At(buffer, tcp + tcpAt.sequence + 2)

/** Where TCP starts in a packet without IPv4 options, fragmentation or extension headers; 0 for any other packet. */
function tcpStart(buffer: Uint8Array, at: number, length: number): number {
  const first = buffer[at] ?? 0
  let start = 0
  if (first === 0x45 && length >= ip4At.length + tcpAt.length) {
    const fragmented = (u16At(buffer, at + ip4At.fragment) & 0xbfff) !== 0
    if (fragmented || buffer[at + ip4At.protocol] !== IPPROTO_TCP || u16At(buffer, at + ip4At.totalLength) !== length) return 0
    start = ip4At.length
  } else if (first >> 4 === 6 && length >= ip6At.length + tcpAt.length) {
    if (buffer[at + ip6At.nextHeader] !== IPPROTO_TCP || u16At(buffer, at + ip6At.payloadLength) + ip6At.length !== length) return 0
    start = ip6At.length
  } else return 0
  const tcpLength = ((buffer[at + start + tcpAt.dataOffset] ?? 0) >> 4) * 4
  return tcpLength >= tcpAt.length && start + tcpLength <= length ? start : 0
}

function sameBytes(one: Uint8Array, at: number, other: Uint8Array, otherAt: number, length: number): boolean {
  for (let index = 0; index < length; index++) if (one[at + index] !== other[otherAt + index]) return false
  return true
}

/** Whether a packet has the addresses and ports of a group; they follow one another. */
function sameFlow({ first, start: groupStart }: Group, { buffer, at }: Piece, start: number): boolean {
  if (groupStart !== start) return false
  const from = start === ip4At.length ? ip4At.source : ip6At.source
  return sameBytes(first.buffer, first.at + from, buffer, at + from, start + 4 - from)
}

/** Whether the headers of a packet are those of a group but for lengths, checksums, sequence numbers, PSH and a counting identification. */
function sameHeaders({ first, start, headers, id }: Group, buffer: Uint8Array, at: number): boolean {
  const same = (from: number, length: number) => sameBytes(first.buffer, first.at + from, buffer, at + from, length)
  if (start === ip4At.length) {
    if (!same(ip4At.tos, 1) || !same(ip4At.fragment, 3)) return false
    // With DF, the identification has no meaning (RFC 6864); without, the packets that are split again get counting ones.
    const whole = u16At(buffer, at + ip4At.fragment) !== 0
    if (!whole && u16At(buffer, at + ip4At.id) !== ((id + 1) & 0xffff)) return false
  } else if (!same(0, 4) || !same(ip6At.hopLimit, 1)) return false
  return (
    same(start + tcpAt.ack, 5) &&
    same(start + tcpAt.window, 2) &&
    same(start + tcpAt.urgent, 2) &&
    same(start + tcpAt.length, headers - start - tcpAt.length)
  )
}
