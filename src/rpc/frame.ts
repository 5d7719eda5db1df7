/**
 * gRPC over HTTP/2: messages in length-prefixed frames, and the status in trailers.
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
import type { Stream } from './http2/stream.ts'
import { RpcError, type StatusName, statusCode, statusName } from './status.ts'

/** Bytes before each message: one flag, four of length. */
export const frameHeader = 5

/** The largest message either side takes. */
export const maxMessage = 32 * 1024 * 1024

/** Fills the header of a frame whose first five bytes were left free. */
export function sealFrame(frame: Buffer): Buffer {
  frame[0] = 0
  frame.writeUInt32BE(frame.length - frameHeader, 1)
  return frame
}

/** Cuts a byte stream into messages, whatever the pieces it comes in. */
export class FrameReader {
  #pieces: Buffer[] = []
  #size = 0
  /** Bytes of the message that is being read; -1 while its header is. */
  #wanted = -1
  readonly #limit: number

  constructor(limit = maxMessage) {
    this.#limit = limit
  }

  /** The messages that are complete now. Throws RpcError for one that is too large or compressed. */
  *push(chunk: Buffer): Generator<Buffer> {
    this.#pieces.push(chunk)
    this.#size += chunk.length
    for (;;) {
      if (this.#wanted < 0) {
        if (this.#size < frameHeader) return
        const header = this.#take(frameHeader)
        if (header[0] !== 0) throw new RpcError('Unimplemented', 'message is compressed: only identity encoding is understood')
        this.#wanted = header.readUInt32BE(1)
        if (this.#wanted > this.#limit)
          throw new RpcError('ResourceExhausted', `message of ${this.#wanted} bytes is larger than the limit of ${this.#limit}`)
      }
      if (this.#size < this.#wanted) return
      const message = this.#take(this.#wanted)
      this.#wanted = -1
      yield message
    }
  }

  /** Throws when the stream ended within a message. */
  end(): void {
    if (this.#size > 0 || this.#wanted >= 0) throw new RpcError('Internal', 'stream ended within a message')
  }

  #take(size: number): Buffer {
    this.#size -= size
    const first = this.#pieces[0]
    if (size === 0) return Buffer.alloc(0)
    if (first && first.length >= size) {
      if (first.length === size) this.#pieces.shift()
      else this.#pieces[0] = first.subarray(size)
      return first.subarray(0, size)
    }
    const all = this.#pieces.length === 1 ? first! : Buffer.concat(this.#pieces)
    this.#pieces = all.length > size ? [all.subarray(size)] : []
    return all.subarray(0, size)
  }
}

/** The trailers that end a call. */
export function statusTrailers(error?: RpcError): Record<string, string> {
  if (!error) return { 'grpc-status': '0' }
  const message = percentEncode(error.message)
  return message === '' ? { 'grpc-status': String(error.code) } : { 'grpc-status': String(error.code), 'grpc-message': message }
}

/** The headers of an answer that has messages. */
export const responseHeaders = { ':status': 200, 'content-type': 'application/grpc' } as const

/** Ends an answer with its status: in trailers behind messages, in the only headers without. */
export function endWith(stream: Stream, error?: RpcError): void {
  const trailers = statusTrailers(error)
  if (stream.headersSent) stream.end(undefined, trailers)
  else stream.respond({ ...responseHeaders, ...trailers }, true)
}

/** How a call ended by its trailers; undefined when well. A missing status is a failure. */
export function statusOf(headers: Record<string, unknown>): RpcError | undefined {
  const code = headers['grpc-status']
  if (code === undefined) return new RpcError('Internal', 'server ended the call without a status')
  const number = Number(code)
  if (number === statusCode.OK) return undefined
  const message = headers['grpc-message']
  return new RpcError(statusName(number), typeof message === 'string' ? percentDecode(message) : '')
}

/** What an HTTP status other than 200 means for a call. */
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
  return match ? Number(match[1]) * units[match[2]!]! : undefined
}

/** A `grpc-timeout` header: at most eight digits, rounded up. */
export function formatTimeout(milliseconds: number): string {
  const rounded = Math.max(1, Math.ceil(milliseconds))
  return rounded < 1e8 ? `${rounded}m` : `${Math.min(99_999_999, Math.ceil(rounded / 1000))}S`
}

function percentEncode(text: string): string {
  return Buffer.from(text)
    .reduce<string[]>((parts, byte) => {
      parts.push(
        byte >= 0x20 && byte <= 0x7e && byte !== 0x25 ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
      )
      return parts
    }, [])
    .join('')
}

function percentDecode(text: string): string {
  const bytes = Buffer.from(text, 'latin1')
  const out: number[] = []
  for (let at = 0; at < bytes.length; at++) {
    const hex = bytes[at] === 0x25 ? bytes.toString('latin1', at + 1, at + 3) : ''
    if (/^[0-9a-f]{2}$/i.test(hex)) {
      out.push(Number.parseInt(hex, 16))
      at += 2
    } else out.push(bytes[at]!)
  }
  return Buffer.from(out).toString('utf8')
}
