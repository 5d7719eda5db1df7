/**
 * The wire format of protocol buffers: varints, fixed widths and length-delimited bytes.
 * 64-bit numbers are JavaScript numbers where those are exact; callers that need every bit use bigint.
 * https://protobuf.dev/programming-guides/encoding/
 */

import { apiStatus } from '../wire/api-status.ts'
import type { StatusName } from './status.ts'

/** Bytes that do not decode. */
export class ProtoError extends Error {
  constructor(
    readonly what: string,
    readonly offset: number,
  ) {
    super(`decode message: ${what} at byte ${offset}`)
    this.name = 'ProtoError'
  }

  get [apiStatus](): StatusName {
    return 'InvalidArgument'
  }
}

/** The wire types of fields. */
export const wireType = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const

const two32 = 0x1_0000_0000

/** Collects the bytes of a message. */
export class Writer {
  #buffer: Buffer
  #length: number

  /** Leaves `reserved` bytes free at the start, for a frame header. */
  constructor(reserved = 0, capacity = 256) {
    this.#buffer = Buffer.allocUnsafe(Math.max(capacity, reserved + 64))
    this.#length = reserved
  }

  get length(): number {
    return this.#length
  }

  /** Everything written so far, including the reserved bytes. */
  finish(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  tag(field: number, type: number): void {
    this.varint(field * 8 + type)
  }

  /** An unsigned number of up to 53 bits. */
  varint(value: number): void {
    this.#ensure(10)
    while (value > 0x7f) {
      this.#buffer[this.#length++] = (value % 0x80) | 0x80
      value = Math.floor(value / 0x80)
    }
    this.#buffer[this.#length++] = value
  }

  /** Any 64 bits; negative numbers as two's complement. */
  varint64(value: number | bigint): void {
    if (typeof value === 'number' && value >= 0) {
      this.varint(value)
      return
    }
    this.#ensure(10)
    let rest = BigInt.asUintN(64, BigInt(value))
    while (rest > 0x7fn) {
      this.#buffer[this.#length++] = Number(rest & 0x7fn) | 0x80
      rest >>= 7n
    }
    this.#buffer[this.#length++] = Number(rest)
  }

  fixed32(value: number): void {
    this.#ensure(4)
    this.#length = this.#buffer.writeUInt32LE(value >>> 0, this.#length)
  }

  fixed64(value: bigint): void {
    this.#ensure(8)
    this.#length = this.#buffer.writeBigUInt64LE(BigInt.asUintN(64, value), this.#length)
  }

  float(value: number): void {
    this.#ensure(4)
    this.#length = this.#buffer.writeFloatLE(value, this.#length)
  }

  double(value: number): void {
    this.#ensure(8)
    this.#length = this.#buffer.writeDoubleLE(value, this.#length)
  }

  /** Bytes without a length prefix. */
  raw(bytes: Uint8Array): void {
    this.#ensure(bytes.length)
    this.#buffer.set(bytes, this.#length)
    this.#length += bytes.length
  }

  bytes(bytes: Uint8Array): void {
    this.varint(bytes.length)
    this.raw(bytes)
  }

  string(text: string): void {
    const size = Buffer.byteLength(text)
    this.varint(size)
    this.#ensure(size)
    this.#length += this.#buffer.write(text, this.#length)
  }

  /** What `write` writes, with a length prefix. */
  delimited(write: () => void): void {
    this.#ensure(1)
    const start = ++this.#length
    write()
    const size = this.#length - start
    if (size < 0x80) {
      this.#buffer[start - 1] = size
      return
    }
    const extra = varintSize(size) - 1
    this.#ensure(extra)
    this.#buffer.copyWithin(start + extra, start, this.#length)
    const end = this.#length + extra
    this.#length = start - 1
    this.varint(size)
    this.#length = end
  }

  #ensure(more: number): void {
    const needed = this.#length + more
    if (needed <= this.#buffer.length) return
    const grown = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2))
    this.#buffer.copy(grown, 0, 0, this.#length)
    this.#buffer = grown
  }
}

/** The size of a varint in bytes. */
export function varintSize(value: number): number {
  let size = 1
  while (value > 0x7f) {
    value = Math.floor(value / 0x80)
    size++
  }
  return size
}

/** Reads the bytes of a message; never past their end. */
export class Reader {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  offset: number
  readonly end: number

  constructor(bytes: Uint8Array, start = 0, end = bytes.length) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.offset = start
    this.end = end
  }

  get done(): boolean {
    return this.offset >= this.end
  }

  /** The next field's number and wire type. */
  tag(): { field: number; type: number } {
    const value = this.varint()
    const field = Math.floor(value / 8)
    if (field === 0 || field > 0x1fff_ffff) throw this.#error('bad field number')
    return { field, type: value & 7 }
  }

  /** An unsigned number; the nearest one when it is beyond 53 bits. */
  varint(): number {
    const low = this.#byte()
    if (low < 0x80) return low
    const { lo, hi } = this.#words(low)
    return hi * two32 + lo
  }

  /** A varint as a signed 64-bit number. */
  signed(): number {
    const { lo, hi } = this.#words(this.#byte())
    return hi >= 0x8000_0000 ? (hi - two32) * two32 + lo : hi * two32 + lo
  }

  /** A varint's lower 32 bits as a signed number. */
  int32(): number {
    return this.#words(this.#byte()).lo | 0
  }

  big(): bigint {
    const { lo, hi } = this.#words(this.#byte())
    return (BigInt(hi) << 32n) | BigInt(lo)
  }

  fixed32(): number {
    return this.#view.getUint32(this.#take(4), true)
  }

  fixed64(): bigint {
    return this.#view.getBigUint64(this.#take(8), true)
  }

  float(): number {
    return this.#view.getFloat32(this.#take(4), true)
  }

  double(): number {
    return this.#view.getFloat64(this.#take(8), true)
  }

  /** Length-delimited bytes; a view of the message, not a copy. */
  bytes(): Buffer {
    const size = this.varint()
    const at = this.#take(size)
    return Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset + at, size)
  }

  string(): string {
    return this.bytes().toString('utf8')
  }

  /** A reader for the length-delimited bytes that follow. */
  delimited(): Reader {
    const size = this.varint()
    const at = this.#take(size)
    return new Reader(this.#bytes, at, at + size)
  }

  /** Skips an unknown value. */
  skip(type: number): void {
    if (type === wireType.varint) this.#words(this.#byte())
    else if (type === wireType.fixed64) this.#take(8)
    else if (type === wireType.bytes) this.#take(this.varint())
    else if (type === wireType.fixed32) this.#take(4)
    else throw this.#error(`unknown wire type ${type}`)
  }

  #words(first: number): { lo: number; hi: number } {
    let lo = first & 0x7f
    let hi = 0
    let byte = first
    for (let shift = 7; byte >= 0x80; shift += 7) {
      if (shift > 63) throw this.#error('number longer than ten bytes')
      byte = this.#byte()
      const bits = byte & 0x7f
      if (shift < 28) lo |= bits << shift
      else if (shift === 28) {
        lo |= bits << 28
        hi = bits >>> 4
      } else hi |= bits << (shift - 32)
    }
    return { lo: lo >>> 0, hi: hi >>> 0 }
  }

  #byte(): number {
    const byte = this.#bytes[this.offset]
    if (byte === undefined || this.offset >= this.end) throw this.#error('unexpected end of message')
    this.offset++
    return byte
  }

  #take(size: number): number {
    const at = this.offset
    if (size > this.end - at) throw this.#error('unexpected end of message')
    this.offset = at + size
    return at
  }

  #error(what: string): ProtoError {
    return new ProtoError(what, this.offset)
  }
}
