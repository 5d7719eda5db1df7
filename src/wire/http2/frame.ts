/**
 * Frames of HTTP/2: nine bytes of header, then the payload. RFC 9113, sections 4 and 6.
 * Payloads of DATA are passed on in pieces as they arrive; all others are collected, and are bounded by the frame size.
 */
import { ConnectionError } from './error.ts'

/** Frame types. */
export const frameType = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const

/** Flags; ACK and END_STREAM share a bit. */
export const flag = { ACK: 0x1, END_STREAM: 0x1, END_HEADERS: 0x4, PADDED: 0x8, PRIORITY: 0x20 } as const

/** Size of a frame header in bytes. */
export const headerSize = 9

/** SETTINGS_MAX_FRAME_SIZE before any SETTINGS frame. */
export const defaultFrameSize = 16_384

/** The client connection preface. */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

/** Receives frames as they arrive; may throw ConnectionError. */
export interface FrameSink {
  /** A frame's header, before any of its payload. */
  begin(type: number, flags: number, stream: number, length: number): void
  /** A piece of an unpadded DATA frame, of which `left` bytes are still to come. */
  data(stream: number, piece: Buffer, left: number, flags: number): void
  /** Any other frame, complete. */
  frame(type: number, flags: number, stream: number, payload: Buffer): void
  /** Whether to stop for now; checked after each frame. */
  readonly sated?: boolean
}

const empty = Buffer.alloc(0)

/** Splits a byte stream into frames. */
export class FrameReader {
  readonly #sink: FrameSink
  readonly #limit: number
  readonly #header = Buffer.alloc(headerSize)
  #headerFill = 0
  #inPayload = false
  #type = 0
  #flags = 0
  #stream = 0
  #left = 0
  /** The payload being collected. */
  #payload: Buffer = empty

  /** `limit` is the maximum frame size that was announced to the peer. */
  constructor(sink: FrameSink, limit: number) {
    this.#sink = sink
    this.#limit = limit
  }

  /**
   * Returns how many bytes were consumed: all, unless the sink is sated. Throws ConnectionError for a frame that is too large,
   * and whatever the sink throws.
   */
  push(chunk: Buffer): number {
    let at = 0
    while (at < chunk.length || (this.#inPayload && this.#left === 0)) {
      if (this.#inPayload) at = this.#takePayload(chunk, at)
      else if (this.#sink.sated) return at
      else at = this.#takeHeader(chunk, at)
    }
    return at
  }

  #takeHeader(chunk: Buffer, at: number): number {
    if (this.#headerFill === 0 && chunk.length - at >= headerSize) {
      this.#begin(chunk, at)
      return at + headerSize
    }
    const take = Math.min(headerSize - this.#headerFill, chunk.length - at)
    chunk.copy(this.#header, this.#headerFill, at, at + take)
    this.#headerFill += take
    if (this.#headerFill === headerSize) {
      this.#headerFill = 0
      this.#begin(this.#header, 0)
    }
    return at + take
  }

  #begin(bytes: Buffer, at: number): void {
    const length = bytes.readUIntBE(at, 3)
    this.#type = bytes.readUInt8(at + 3)
    this.#flags = bytes.readUInt8(at + 4)
    // The highest bit is reserved and ignored.
    this.#stream = bytes.readUInt32BE(at + 5) & 0x7fffffff
    if (length > this.#limit)
      throw new ConnectionError('FRAME_SIZE_ERROR', `frame of ${length} bytes is larger than the limit of ${this.#limit}`)
    this.#sink.begin(this.#type, this.#flags, this.#stream, length)
    this.#left = length
    this.#inPayload = true
    this.#payload = empty
  }

  #takePayload(chunk: Buffer, at: number): number {
    const take = Math.min(this.#left, chunk.length - at)
    if (this.#type === frameType.DATA && (this.#flags & flag.PADDED) === 0) {
      this.#left -= take
      if (this.#left === 0) this.#inPayload = false
      this.#sink.data(this.#stream, chunk.subarray(at, at + take), this.#left, this.#flags)
      return at + take
    }
    if (this.#payload === empty && take === this.#left) {
      this.#inPayload = false
      this.#sink.frame(this.#type, this.#flags, this.#stream, chunk.subarray(at, at + take))
      return at + take
    }
    if (this.#payload === empty) this.#payload = Buffer.allocUnsafe(this.#left)
    chunk.copy(this.#payload, this.#payload.length - this.#left, at, at + take)
    this.#left -= take
    if (this.#left === 0) {
      this.#inPayload = false
      this.#sink.frame(this.#type, this.#flags, this.#stream, this.#payload)
      this.#payload = empty
    }
    return at + take
  }
}

/** Writes a frame header; returns the offset after it. */
export function writeHeader(out: Buffer, at: number, length: number, type: number, flags: number, stream: number): number {
  out[at] = length >>> 16
  out[at + 1] = length >>> 8
  out[at + 2] = length
  out[at + 3] = type
  out[at + 4] = flags
  out[at + 5] = stream >>> 24
  out[at + 6] = stream >>> 16
  out[at + 7] = stream >>> 8
  out[at + 8] = stream
  return at + headerSize
}

/** The content of a frame without padding and priority. Throws ConnectionError for padding longer than the frame. */
export function content(type: number, flags: number, payload: Buffer): Buffer {
  if ((flags & (flag.PADDED | flag.PRIORITY)) === 0) return payload
  let from = 0
  let padding = 0
  if (flags & flag.PADDED) {
    if (payload.length < 1) throw new ConnectionError('FRAME_SIZE_ERROR', 'padded frame without a padding length')
    padding = payload.readUInt8(0)
    from = 1
  }
  if (type === frameType.HEADERS && flags & flag.PRIORITY) from += 5
  if (from + padding > payload.length) throw new ConnectionError('PROTOCOL_ERROR', 'padding is longer than the frame')
  return payload.subarray(from, payload.length - padding)
}
