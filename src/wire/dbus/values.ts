/** Values of D-Bus (specification, "Marshaling"): the basic types and variants of them. Containers are not needed by what is served. */
import { DecodeError } from '../decode-error.ts'

/** One value with its type code. `h` is an index into the descriptors sent beside the message. */
export type DbusValue =
  | { readonly type: 's' | 'o' | 'g'; readonly value: string }
  | { readonly type: 'y' | 'n' | 'q' | 'i' | 'u' | 'h' | 'd'; readonly value: number }
  | { readonly type: 'x' | 't'; readonly value: bigint }
  | { readonly type: 'b'; readonly value: boolean }
  | { readonly type: 'v'; readonly value: DbusValue }

type TypeCode = DbusValue['type']

const sizes: Record<TypeCode, number> = { y: 1, b: 4, n: 2, q: 2, i: 4, u: 4, h: 4, x: 8, t: 8, d: 8, s: 4, o: 4, g: 1, v: 1 }
/** The most variants inside one another; the specification allows 64 containers. */
const maxDepth = 8

/** Whether every type of a signature can be read. */
export const isReadable = (signature: string): boolean => [...signature].every((code) => Object.hasOwn(sizes, code))

/** Reads values from a message; alignment counts from its first byte. Throws DecodeError. */
export class DbusReader {
  readonly #bytes: Buffer

  constructor(
    bytes: Uint8Array,
    readonly littleEndian: boolean,
    public offset = 0,
  ) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /** Skips the padding before a value of this alignment. */
  align(size: number): void {
    this.#take((size - (this.offset % size)) % size)
  }

  /** The values of a signature, one after another. */
  values(signature: string): DbusValue[] {
    return [...signature].map((code) => this.value(code))
  }

  /** A value of one type. */
  value(code: string, depth = 0): DbusValue {
    if (!isTypeCode(code)) throw new DecodeError('D-Bus value', this.offset, `type "${code}" is not supported`)
    switch (code) {
      case 's':
      case 'o':
        return { type: code, value: this.#text(this.u32()) }
      case 'g':
        return { type: code, value: this.signature() }
      case 'b':
        return { type: code, value: this.#boolean() }
      case 'x':
      case 't':
        return { type: code, value: this.#wide(code) }
      case 'v':
        return { type: code, value: this.#variant(depth) }
      default:
        return { type: code, value: this.#number(code) }
    }
  }

  u8(): number {
    return this.#bytes.readUInt8(this.#take(1))
  }

  u32(): number {
    this.align(4)
    const at = this.#take(4)
    return this.littleEndian ? this.#bytes.readUInt32LE(at) : this.#bytes.readUInt32BE(at)
  }

  /** A signature: a length of one byte, the type codes, and NUL. */
  signature(): string {
    return this.#text(this.u8())
  }

  #boolean(): boolean {
    const at = this.offset
    const value = this.u32()
    if (value > 1) throw new DecodeError('D-Bus boolean', at, String(value))
    return value === 1
  }

  #wide(code: 'x' | 't'): bigint {
    this.align(8)
    const at = this.#take(8)
    if (code === 'x') return this.littleEndian ? this.#bytes.readBigInt64LE(at) : this.#bytes.readBigInt64BE(at)
    return this.littleEndian ? this.#bytes.readBigUInt64LE(at) : this.#bytes.readBigUInt64BE(at)
  }

  #number(code: 'y' | 'n' | 'q' | 'i' | 'u' | 'h' | 'd'): number {
    this.align(sizes[code])
    const at = this.#take(sizes[code])
    const bytes = this.#bytes
    switch (code) {
      case 'y':
        return bytes.readUInt8(at)
      case 'n':
        return this.littleEndian ? bytes.readInt16LE(at) : bytes.readInt16BE(at)
      case 'q':
        return this.littleEndian ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at)
      case 'i':
        return this.littleEndian ? bytes.readInt32LE(at) : bytes.readInt32BE(at)
      case 'd':
        return this.littleEndian ? bytes.readDoubleLE(at) : bytes.readDoubleBE(at)
      default:
        return this.littleEndian ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at)
    }
  }

  #variant(depth: number): DbusValue {
    const at = this.offset
    if (depth >= maxDepth) throw new DecodeError('D-Bus variant', at, 'too many inside one another')
    const signature = this.signature()
    if (signature.length !== 1) throw new DecodeError('D-Bus variant', at, `type "${signature}" is not supported`)
    return this.value(signature, depth + 1)
  }

  #text(length: number): string {
    const at = this.#take(length)
    if (this.#bytes[this.#take(1)] !== 0) throw new DecodeError('D-Bus string', at, 'no NUL at its end')
    return this.#bytes.toString('utf8', at, at + length)
  }

  #take(length: number): number {
    const at = this.offset
    if (at + length > this.#bytes.length)
      throw new DecodeError('D-Bus value', at, `${length} bytes expected, ${this.#bytes.length - at} left`)
    this.offset = at + length
    return at
  }
}

/** Writes values in little-endian order; alignment counts from the first byte written. */
export class DbusWriter {
  readonly #parts: Buffer[] = []
  #length = 0

  align(size: number): this {
    return this.#add(Buffer.alloc((size - (this.#length % size)) % size))
  }

  /** Values without their types. */
  values(values: readonly DbusValue[]): this {
    for (const value of values) this.value(value)
    return this
  }

  value({ type, value }: DbusValue): this {
    switch (type) {
      case 's':
      case 'o':
        return this.u32(Buffer.byteLength(value)).#add(Buffer.from(`${value}\0`))
      case 'g':
        return this.#add(Buffer.from([value.length])).#add(Buffer.from(`${value}\0`))
      case 'b':
        return this.u32(value ? 1 : 0)
      case 'v':
        return this.value({ type: 'g', value: value.type }).value(value)
      default:
        return this.align(sizes[type]).#add(numberBytes(type, value))
    }
  }

  u32(value: number): this {
    return this.align(4).#add(numberBytes('u', value))
  }

  bytes(): Buffer {
    return Buffer.concat(this.#parts)
  }

  #add(part: Buffer): this {
    this.#parts.push(part)
    this.#length += part.length
    return this
  }
}

function numberBytes(type: TypeCode, value: number | bigint): Buffer {
  const bytes = Buffer.alloc(sizes[type])
  if (typeof value === 'bigint') {
    if (type === 'x') bytes.writeBigInt64LE(value)
    else bytes.writeBigUInt64LE(value)
  } else if (type === 'd') bytes.writeDoubleLE(value)
  else if (type === 'n' || type === 'i') bytes.writeIntLE(value, 0, bytes.length)
  else bytes.writeUIntLE(value, 0, bytes.length)
  return bytes
}

const isTypeCode = (code: string): code is TypeCode => Object.hasOwn(sizes, code)
