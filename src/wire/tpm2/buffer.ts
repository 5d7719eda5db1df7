/** Reading and writing the structures of TPM 2.0: big endian, buffers with a length of 2 bytes in front. */
import { DecodeError } from '../decode-error.ts'
import { mostBytes } from './constants.ts'

/** Reads a response, within its bounds. */
export class TpmReader {
  readonly #bytes: Buffer
  readonly #what: string
  #at = 0

  /** Throws DecodeError for more bytes than a response has. */
  constructor(bytes: Uint8Array, what: string) {
    if (bytes.length > mostBytes) throw new DecodeError(what, mostBytes, 'it is too long')
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#what = what
  }

  /** Offset of the next byte. */
  get offset(): number {
    return this.#at
  }

  #take(length: number): number {
    const at = this.#at
    if (length > this.#bytes.length - at) throw this.failure('it is too short')
    this.#at += length
    return at
  }

  u8(): number {
    return this.#bytes.readUInt8(this.#take(1))
  }

  u16(): number {
    return this.#bytes.readUInt16BE(this.#take(2))
  }

  u32(): number {
    return this.#bytes.readUInt32BE(this.#take(4))
  }

  /** The next `length` bytes. */
  take(length: number): Uint8Array {
    const at = this.#take(length)
    return new Uint8Array(this.#bytes.subarray(at, at + length))
  }

  /** A buffer with its length in front (TPM2B), at most `most` bytes. */
  sized(most = mostBytes): Uint8Array {
    const length = this.u16()
    if (length > most) throw this.failure(`a buffer of ${length} bytes, at most ${most} are expected`)
    return this.take(length)
  }

  /** What is left. */
  rest(): Uint8Array {
    return this.take(this.#bytes.length - this.#at)
  }

  /** Throws DecodeError unless everything was read. */
  end(): void {
    if (this.#at !== this.#bytes.length) throw this.failure('more follows than is expected')
  }

  failure(detail: string): DecodeError {
    return new DecodeError(this.#what, this.#at, detail)
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
