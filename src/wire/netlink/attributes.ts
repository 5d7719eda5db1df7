/** Attributes of netlink messages: length, type, payload, padded to four bytes (linux/netlink.h). */
import { DecodeError } from '../decode-error.ts'

/** One attribute; the flags "nested" and "network byte order" are removed from its type. */
export interface Attribute {
  type: number
  value: Uint8Array
  /** Offset of the value in the decoded bytes. */
  offset: number
}

const typeMask = 0x3fff
const nestedFlag = 0x8000
const maxAttributes = 8192

const align = (length: number) => (length + 3) & ~3

/** Splits attributes; `base` is the offset of the bytes in their message. */
export function readAttributes(bytes: Uint8Array, what = 'netlink attribute', base = 0): Attribute[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const found: Attribute[] = []
  let at = 0
  while (bytes.length - at >= 4) {
    const length = view.getUint16(at, true)
    if (length < 4 || at + length > bytes.length) throw new DecodeError(what, base + at, `length ${length} of ${bytes.length - at} bytes`)
    if (found.length === maxAttributes) throw new DecodeError(what, base + at, 'too many')
    found.push({ type: view.getUint16(at + 2, true) & typeMask, value: bytes.subarray(at + 4, at + length), offset: base + at + 4 })
    at += align(length)
  }
  if (at < bytes.length) throw new DecodeError(what, base + at, 'bytes left over')
  return found
}

/** Reads attributes by type; of a repeated type the last counts, as in the kernel. */
export class AttributeReader {
  readonly #found = new Map<number, Attribute>()
  readonly #what: string

  constructor(bytes: Uint8Array, what = 'netlink attribute', base = 0) {
    this.#what = what
    for (const attribute of readAttributes(bytes, what, base)) this.#found.set(attribute.type, attribute)
  }

  has(type: number): boolean {
    return this.#found.has(type)
  }

  bytes(type: number): Uint8Array | undefined {
    return this.#found.get(type)?.value
  }

  #number(type: number, size: number, bigEndian = false): number | undefined {
    const attribute = this.#found.get(type)
    if (!attribute) return undefined
    const { value, offset } = attribute
    if (value.length < size) throw new DecodeError(this.#what, offset, `${value.length} bytes where ${size} belong`)
    const view = new DataView(value.buffer, value.byteOffset, value.byteLength)
    if (size === 1) return view.getUint8(0)
    return size === 2 ? view.getUint16(0, !bigEndian) : view.getUint32(0, !bigEndian)
  }

  u8(type: number): number | undefined {
    return this.#number(type, 1)
  }

  u16(type: number): number | undefined {
    return this.#number(type, 2)
  }

  be16(type: number): number | undefined {
    return this.#number(type, 2, true)
  }

  u32(type: number): number | undefined {
    return this.#number(type, 4)
  }

  be32(type: number): number | undefined {
    return this.#number(type, 4, true)
  }

  i32(type: number): number | undefined {
    const value = this.#number(type, 4)
    return value === undefined ? undefined : value | 0
  }

  text(type: number): string | undefined {
    const value = this.bytes(type)
    if (!value) return undefined
    const end = value.indexOf(0)
    return Buffer.from(end < 0 ? value : value.subarray(0, end)).toString()
  }

  nested(type: number): AttributeReader | undefined {
    const attribute = this.#found.get(type)
    return attribute && new AttributeReader(attribute.value, this.#what, attribute.offset)
  }

  list(type: number): Attribute[] {
    const attribute = this.#found.get(type)
    return attribute ? readAttributes(attribute.value, this.#what, attribute.offset) : []
  }
}

/** Encodes one attribute. */
export function attribute(type: number, value: Uint8Array): Uint8Array {
  const length = value.length + 4
  if (length > 0xffff) throw new RangeError(`netlink attribute ${type}: ${value.length} bytes do not fit`)
  const bytes = Buffer.alloc(align(length))
  bytes.writeUInt16LE(length, 0)
  bytes.writeUInt16LE(type, 2)
  bytes.set(value, 4)
  return bytes
}

/** Encodes an attribute that contains attributes. */
export function nested(type: number, attributes: readonly Uint8Array[]): Uint8Array {
  return attribute(type | nestedFlag, Buffer.concat(attributes))
}

/** Encodes a one-byte number. */
export const u8 = (type: number, value: number): Uint8Array => attribute(type, Uint8Array.of(value))

/** Encodes a two-byte number. */
export const u16 = (type: number, value: number): Uint8Array => {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(value)
  return attribute(type, bytes)
}

/** Encodes a two-byte number in network byte order. */
export const be16 = (type: number, value: number): Uint8Array => {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return attribute(type, bytes)
}

/** Encodes a four-byte number. */
export const u32 = (type: number, value: number): Uint8Array => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value >>> 0)
  return attribute(type, bytes)
}

/** Encodes a NUL-terminated string. */
export const text = (type: number, value: string): Uint8Array => attribute(type, Buffer.from(`${value}\0`))
