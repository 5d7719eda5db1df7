/**
 * Verifies etcd's write-ahead log as etcd reads it (server/storage/wal: decoder.go, encoder.go, record.proto). A segment is a
 * sequence of frames: 8 bytes with the length of a record and of its padding, the record, the padding. A record is its type, a
 * CRC-32C over the data of all records up to it, and its data. A frame of length 0 is the rest of a preallocated segment.
 */
import { Crc32c } from '../crc32c.ts'
import { DecodeError } from '../decode-error.ts'
import { readProtobufFields } from './protobuf-fields.ts'

/** One file of the log. */
export interface WalSegment {
  /** `SEQUENCE-INDEX.wal`, both of 16 hexadecimal digits. */
  readonly name: string
  readonly bytes: Uint8Array
}

/** The member that wrote a log: ids of 64 bits as decimal text. */
export interface WalOwner {
  readonly member: string
  readonly cluster: string
}

const record = { metadata: 1, entry: 2, state: 3, crc: 4, snapshot: 5 }
const frameSize = 8
/** A write that was interrupted leaves sectors of zeros. */
const sectorSize = 512
const segmentName = /^([0-9a-f]{16})-[0-9a-f]{16}\.wal$/

/** Whether a file of this name is a segment of the log. */
export const isWalSegment = (name: string): boolean => segmentName.test(name)

/** What a log holds. */
export interface WalContents {
  /** The member that wrote it. */
  readonly owner?: WalOwner
  /** Index of its last entry, or of its last snapshot. */
  readonly last: bigint
}

/** The state of reading: the checksum continues from one segment to the next. */
interface Progress {
  sum: Crc32c | undefined
  owner: WalOwner | undefined
  last: bigint
}

/**
 * Reads all segments, in the order of their names. Throws DecodeError for a log that etcd
 * refuses. Its last write may be incomplete: etcd cuts it off.
 */
export function verifyWal(segments: Iterable<WalSegment>): WalContents {
  const progress: Progress = { sum: undefined, owner: undefined, last: 0n }
  let expected: bigint | undefined
  let torn: DecodeError | undefined
  for (const segment of segments) {
    if (torn) throw torn
    const [, sequence = ''] = segmentName.exec(segment.name) ?? []
    const number = BigInt(`0x${sequence || '0'}`)
    if (expected !== undefined && number !== expected) throw new DecodeError('etcd log', 0, `segment ${expected} is missing`)
    expected = number + 1n
    torn = verifySegment(segment, progress)
  }
  const { owner, last } = progress
  return { last, ...(owner && { owner }) }
}

/** Verifies one segment; returns an error that is none in the last one. */
function verifySegment({ name, bytes }: WalSegment, progress: Progress): DecodeError | undefined {
  const numbers = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  for (let at = 0; at + frameSize <= bytes.length; ) {
    const word = numbers.getBigUint64(at, true)
    if (word === 0n) return undefined
    const length = Number(word & 0x00ff_ffff_ffff_ffffn)
    const padding = word >> 63n ? Number((word >> 56n) & 7n) : 0
    const start = at + frameSize
    if (length >= bytes.length - start - padding + 1)
      return new DecodeError(`etcd log ${name}`, at, `a record of ${length} bytes does not fit`)
    const problem = verifyRecord(bytes.subarray(start, start + length), progress)
    if (problem) {
      const error = new DecodeError(`etcd log ${name}`, at, problem)
      if (hasEmptySector(bytes, start, start + length)) return error
      throw error
    }
    at = start + length + padding
  }
  return undefined
}

/** Takes one record; returns what is wrong with it. */
function verifyRecord(bytes: Uint8Array, progress: Progress): string | undefined {
  let parsed: { type: number; crc: number; data: Uint8Array }
  try {
    parsed = readRecord(bytes)
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error
    return 'it is not a record'
  }
  const { type, crc, data } = parsed
  if (type === record.crc) {
    if (progress.sum && progress.sum.value !== 0 && progress.sum.value !== crc) return 'checksum does not continue'
    progress.sum = new Crc32c(crc)
    return undefined
  }
  if (type < record.metadata || type > record.snapshot) return `record of type ${type}`
  progress.sum ??= new Crc32c()
  progress.sum.update(data)
  if (progress.sum.value !== crc) return 'checksum is different'
  if (type === record.metadata) progress.owner = ownerOf(data)
  // `raftpb.Entry` has its index in field 3, `walpb.Snapshot` in field 1. An entry replaces those from its index on.
  if (type === record.entry) progress.last = numberIn(data, 3)
  if (type === record.snapshot) progress.last = maximum(progress.last, numberIn(data, 1))
  return undefined
}

/** `walpb.Record`. */
function readRecord(bytes: Uint8Array): { type: number; crc: number; data: Uint8Array } {
  let type = 0
  let crc = 0
  let data: Uint8Array = new Uint8Array(0)
  for (const { id, value } of readProtobufFields(bytes)) {
    if (id === 1 && typeof value === 'bigint') type = Number(value)
    else if (id === 2 && typeof value === 'bigint') crc = Number(BigInt.asUintN(32, value))
    else if (id === 3 && typeof value !== 'bigint') data = value
    else throw new DecodeError('etcd log record', 0, `field ${id}`)
  }
  return { type, crc, data }
}

const maximum = (a: bigint, b: bigint): bigint => (a > b ? a : b)

function numberIn(data: Uint8Array, field: number): bigint {
  for (const { id, value } of readProtobufFields(data)) if (id === field && typeof value === 'bigint') return value
  return 0n
}

/** `etcdserverpb.Metadata`. */
function ownerOf(data: Uint8Array): WalOwner {
  const numbers = new Map([...readProtobufFields(data)].map(({ id, value }) => [id, value]))
  return { member: String(numbers.get(1) ?? 0), cluster: String(numbers.get(2) ?? 0) }
}

/** Whether a sector of a record is empty, as after an interrupted write. */
function hasEmptySector(bytes: Uint8Array, start: number, end: number): boolean {
  for (let from = start; from < end; ) {
    const to = Math.min(end, (Math.floor(from / sectorSize) + 1) * sectorSize)
    if (bytes.subarray(from, to).every((byte) => byte === 0)) return true
    from = to
  }
  return false
}
