/** Reading and writing the structures of TPM 2.0: big endian, buffers with a length of 2 bytes in front; and reading the logs of what was measured. */
import { DecodeError } from '../decode-error.ts'
import { mostBytes } from './constants.ts'

/** Reads bytes one after another, within their bounds. */
class BoundedReader {
  protected readonly bytes: Buffer
  readonly #what: string
  #at = 0

  /** Throws DecodeError for more than `most` bytes. */
  constructor(bytes: Uint8Array, what: string, most: number) {
    if (bytes.length > most) throw new DecodeError(what, most, 'it is too long')
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#what = what
  }

  /** Offset of the next byte. */
  get offset(): number {
    return this.#at
  }

  /** Whether everything was read. */
  get ended(): boolean {
    return this.#at === this.bytes.length
  }

  /** Passes the next `length` bytes, and gives their offset. */
  protected pass(length: number): number {
    const at = this.#at
    if (length > this.bytes.length - at) throw this.failure('it is too short')
    this.#at += length
    return at
  }

  /** The next `length` bytes. */
  take(length: number): Uint8Array {
    const at = this.pass(length)
    return new Uint8Array(this.bytes.subarray(at, at + length))
  }

  failure(detail: string): DecodeError {
    return new DecodeError(this.#what, this.#at, detail)
  }
}

/** Reads a response. */
export class TpmReader extends BoundedReader {
  constructor(bytes: Uint8Array, what: string) {
    super(bytes, what, mostBytes)
  }

  u8(): number {
    return this.bytes.readUInt8(this.pass(1))
  }

  u16(): number {
    return this.bytes.readUInt16BE(this.pass(2))
  }

  u32(): number {
    return this.bytes.readUInt32BE(this.pass(4))
  }

  /** A buffer with its length in front (TPM2B), at most `most` bytes. */
  sized(most = mostBytes): Uint8Array {
    const length = this.u16()
    if (length > most) throw this.failure(`a buffer of ${length} bytes, at most ${most} are expected`)
    return this.take(length)
  }

  /** What is left. */
  rest(): Uint8Array {
    return this.take(this.bytes.length - this.offset)
  }

  /** Throws DecodeError unless everything was read. */
  end(): void {
    if (!this.ended) throw this.failure('more follows than is expected')
  }
}

/** Most bytes of a log: firmware reserves a few hundred KiB at most. */
export const mostLogBytes = 1 << 20

/** Reads a log of measurements, which is little endian. */
export class LogReader extends BoundedReader {
  constructor(bytes: Uint8Array, what: string) {
    super(bytes, what, mostLogBytes)
  }

  u16(): number {
    return this.bytes.readUInt16LE(this.pass(2))
  }

  u32(): number {
    return this.bytes.readUInt32LE(this.pass(4))
  }
}

/** An integer of 1, 2 or 4 bytes. */
function integer(size: 1 | 2 | 4, value: number): Uint8Array {
  const bytes = Buffer.alloc(size)
  bytes.writeUIntBE(value, 0, size)
  return bytes
}

export const u8 = (value: number): Uint8Array => integer(1, value)
export const u16 = (value: number): Uint8Array => integer(2, value)
export const u32 = (value: number): Uint8Array => integer(4, value)

/** A buffer with its length in front (TPM2B). */
export const sized = (bytes: Uint8Array): Uint8Array => joined(u16(bytes.length), bytes)

/** Buffers one after another. */
export const joined = (...parts: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(parts))
