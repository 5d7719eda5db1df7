/**
 * gRPC over HTTP/2: messages in length-prefixed frames, and the status in trailers.
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
import type { Stream } from './http2/stream.ts'
import { RpcError, type StatusName, statusCode, statusName } from './status.ts'

/** Bytes before each message: one flag, four of length. */
export const frameHeader = 5

/** The largest message either side accepts. */
export const maxMessage = 32 * 1024 * 1024

/** Writes the header of a frame into its first five bytes, which were left free. */
export function sealFrame(frame: Buffer): Buffer {
  frame[0] = 0
  frame.writeUInt32BE(frame.length - frameHeader, 1)
  return frame
}

const none = Buffer.alloc(0)

/** Initial allocation for a message that arrives in pieces; it grows with received bytes, not with the announced length. */
const firstCapacity = 4096

/** Splits a byte stream into messages. */
export class FrameReader {
  readonly #limit: number
  /** The header of a message, when it arrives in pieces. */
  #header: Buffer | undefined
  #headerSize = 0
  /** Length of the current message; -1 while its header is incomplete. */
  #wanted = -1
  #partial = none
  #size = 0

  constructor(limit = maxMessage) {
    this.#limit = limit
  }

  /** Memory in bytes of an incomplete message. */
  get held(): number {
    return this.#partial.length + this.#headerSize
  }

  /** The complete messages so far. Throws RpcError for one that is too large or compressed, as soon as its header shows that. */
  *push(chunk: Buffer): Generator<Buffer> {
    let at = 0
    for (;;) {
      if (this.#wanted < 0) {
        const taken = Math.min(frameHeader - this.#headerSize, chunk.length - at)
        this.#headerSize += taken
        if (taken === frameHeader) this.#wanted = this.#length(chunk, at)
        else {
          this.#header ??= Buffer.alloc(frameHeader)
          chunk.copy(this.#header, this.#headerSize - taken, at, at + taken)
          if (this.#headerSize === frameHeader) this.#wanted = this.#length(this.#header, 0)
        }
        at += taken
        if (this.#wanted < 0) return
      }
      const missing = this.#wanted - this.#size
      if (chunk.length - at < missing) {
        this.#keep(chunk, at)
        return
      }
      const message = this.#size === 0 ? chunk.subarray(at, at + missing) : this.#completed(chunk, at, missing)
      at += missing
      this.#wanted = -1
      this.#headerSize = 0
      yield message
    }
  }

  /** Throws when the stream ended within a message. */
  end(): void {
    if (this.#headerSize > 0) throw new RpcError('Internal', 'stream ended within a message')
  }

  #length(header: Buffer, at: number): number {
    if (header[at] !== 0) throw new RpcError('Unimplemented', 'message is compressed: only identity encoding is understood')
    const length = header.readUInt32BE(at + 1)
    if (length > this.#limit)
      throw new RpcError('ResourceExhausted', `message of ${length} bytes is larger than the limit of ${this.#limit}`)
    return length
  }

  #keep(chunk: Buffer, at: number): void {
    const needed = this.#size + chunk.length - at
    if (needed > this.#partial.length) {
      const grown = Buffer.allocUnsafe(Math.min(this.#wanted, Math.max(firstCapacity, needed * 2)))
      this.#partial.copy(grown, 0, 0, this.#size)
      this.#partial = grown
    }
    chunk.copy(this.#partial, this.#size, at)
    this.#size = needed
  }

  #completed(chunk: Buffer, at: number, missing: number): Buffer {
    this.#keep(chunk.subarray(0, at + missing), at)
    const message = this.#partial.subarray(0, this.#size)
    this.#partial = none
    this.#size = 0
    return message
  }
}

/** The trailers that end a call. */
export function statusTrailers(error?: RpcError): Record<string, string> {
  if (!error) return { 'grpc-status': '0' }
  const message = percentEncode(error.message)
  return message === '' ? { 'grpc-status': String(error.code) } : { 'grpc-status': String(error.code), 'grpc-message': message }
}

/** The headers of a response with messages. */
export const responseHeaders = { ':status': 200, 'content-type': 'application/grpc' } as const

/** Ends a response with its status: in trailers after messages, or in the only headers (trailers-only). */
export function endWith(stream: Stream, error?: RpcError): void {
  const trailers = statusTrailers(error)
  if (stream.headersSent) stream.end(undefined, trailers)
  else stream.respond({ ...responseHeaders, ...trailers }, true)
}

/** The status of a call in its trailers; undefined when OK. A missing status is a failure. */
export function statusOf(headers: Record<string, unknown>): RpcError | undefined {
  const code = headers['grpc-status']
  if (code === undefined) return new RpcError('Internal', 'server ended the call without a status')
  const number = Number(code)
  if (number === statusCode.OK) return undefined
  const message = headers['grpc-message']
  return new RpcError(statusName(number), typeof message === 'string' ? percentDecode(message) : '')
}

/** The gRPC status for an HTTP status other than 200. */
export function statusOfHttp(status: number): StatusName {
  if (status === 400) return 'Internal'
  if (status === 401) return 'Unauthenticated'
  if (status === 403) return 'PermissionDenied'
  if (status === 404) return 'Unimplemented'
  if (status === 429 || (status >= 502 && status <= 504)) return 'Unavailable'
  return 'Unknown'
}

const units: Record<string, number> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 }

/** Milliseconds in a `grpc-timeout` header; undefined when there is none or it is malformed. */
export function parseTimeout(value: unknown): number | undefined {
  const match = typeof value === 'string' ? /^(\d{1,8})([HMSmun])$/.exec(value) : null
  const [, amount, unit = ''] = match ?? []
  const milliseconds = units[unit]
  return milliseconds === undefined ? undefined : Number(amount) * milliseconds
}

/** A `grpc-timeout` header: at most eight digits, rounded up. */
export function formatTimeout(milliseconds: number): string {
  const rounded = Math.max(1, Math.ceil(milliseconds))
  return rounded < 1e8 ? `${rounded}m` : `${Math.min(99_999_999, Math.ceil(rounded / 1000))}S`
}

const plain = /^[\x20-\x24\x26-\x7e]*$/

function percentEncode(text: string): string {
  if (plain.test(text)) return text
  let encoded = ''
  for (const byte of Buffer.from(text))
    encoded +=
      byte >= 0x20 && byte <= 0x7e && byte !== 0x25 ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  return encoded
}

function percentDecode(text: string): string {
  const bytes = Buffer.from(text, 'latin1')
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const hex = bytes[at] === 0x25 ? bytes.toString('latin1', at + 1, at + 3) : ''
    if (/^[0-9a-f]{2}$/i.test(hex)) {
      bytes[length++] = Number.parseInt(hex, 16)
      at += 2
    } else bytes[length++] = bytes.readUInt8(at)
  }
  return bytes.toString('utf8', 0, length)
}
