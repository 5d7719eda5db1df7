/**
 * DER (ITU-T X.690), the subset that keys and certificates use.
 *
 * Encoding is a tree of function calls, each returning finished bytes. Decoding is a cursor over definite lengths only; it never
 * recurses by itself, so hostile nesting costs nothing.
 */
import { DecodeError } from './decode-error.ts'

/** Universal tags, with the constructed bit where DER requires it. */
export const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  utf8String: 0x0c,
  printableString: 0x13,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const

/** One tag, length and value. */
export function element(tag: number, ...contents: Uint8Array[]): Uint8Array {
  const body = Buffer.concat(contents)
  return Buffer.concat([Buffer.from([tag]), lengthOctets(body.length), body])
}

function lengthOctets(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length])
  const octets: number[] = []
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) octets.unshift(rest % 256)
  return Buffer.from([0x80 | octets.length, ...octets])
}

/** SEQUENCE of finished elements. */
export const sequence = (...contents: Uint8Array[]): Uint8Array => element(tags.sequence, ...contents)

/** SET OF finished elements, in the order DER requires (X.690 §11.6). */
export const setOf = (...contents: Uint8Array[]): Uint8Array => element(tags.set, ...contents.sort(Buffer.compare))

/** INTEGER, not negative, from big-endian bytes or a small number. */
export function integer(value: Uint8Array | number): Uint8Array {
  let bytes =
    typeof value === 'number'
      ? Buffer.from([(value >>> 24) & 255, (value >>> 16) & 255, (value >>> 8) & 255, value & 255])
      : Buffer.from(value)
  while (bytes.length > 1 && bytes[0] === 0) bytes = bytes.subarray(1)
  const [high = 0] = bytes
  return element(tags.integer, high & 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes)
}

/** OBJECT IDENTIFIER from its dotted form. */
export function oid(dotted: string): Uint8Array {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  const octets: number[] = []
  for (const arc of [first * 40 + second, ...rest]) {
    const groups = [arc & 0x7f]
    for (let high = Math.floor(arc / 128); high > 0; high = Math.floor(high / 128)) groups.unshift((high & 0x7f) | 0x80)
    octets.push(...groups)
  }
  return element(tags.oid, Buffer.from(octets))
}

/** OCTET STRING. */
export const octetString = (...contents: Uint8Array[]): Uint8Array => element(tags.octetString, ...contents)

/** BIT STRING whose last byte has some unused bits. */
export const bitString = (bytes: Uint8Array, unused = 0): Uint8Array => element(tags.bitString, Buffer.from([unused]), bytes)

/** BOOLEAN. */
export const boolean = (value: boolean): Uint8Array => element(tags.boolean, Buffer.from([value ? 0xff : 0]))

/** NULL. */
export const nothing = (): Uint8Array => element(tags.null)

/** PrintableString where its alphabet suffices, else UTF8String. */
export const text = (value: string): Uint8Array =>
  element(/^[A-Za-z0-9 '()+,\-./:=?]*$/.test(value) ? tags.printableString : tags.utf8String, Buffer.from(value))

/** UTCTime until 2049, GeneralizedTime from then on (RFC 5280 §4.1.2.5). */
export function time(at: Date): Uint8Array {
  const digits = `${at.toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`
  return at.getUTCFullYear() < 2050
    ? element(tags.utcTime, Buffer.from(digits.slice(2)))
    : element(tags.generalizedTime, Buffer.from(digits))
}

/** Context tag [n] around a whole element. */
export const explicit = (n: number, ...contents: Uint8Array[]): Uint8Array => element(0xa0 | n, ...contents)

/** Context tag [n] instead of a primitive's own tag. */
export const implicit = (n: number, content: Uint8Array): Uint8Array => element(0x80 | n, content)

/** A decoded element. */
export interface Element {
  tag: number
  /** The value alone. */
  content: Uint8Array
  /** Tag, length and value. */
  raw: Uint8Array
  /** Offset of `content` in the outermost input. */
  offset: number
}

/** A cursor over consecutive elements. */
export class DerReader {
  #at = 0
  constructor(
    readonly what: string,
    readonly bytes: Uint8Array,
    readonly base = 0,
  ) {}

  get done(): boolean {
    return this.#at >= this.bytes.length
  }

  /** The tag of the next element, or undefined at the end. */
  get peek(): number | undefined {
    return this.bytes[this.#at]
  }

  fail(detail: string): never {
    throw new DecodeError(this.what, this.base + this.#at, detail)
  }

  /** Reads one element, which must have the tag if one is given. */
  next(tag?: number): Element {
    const start = this.#at
    const found = this.bytes[start]
    if (found === undefined) this.fail('ends too early')
    if (tag !== undefined && found !== tag) this.fail(`tag 0x${found.toString(16)} where 0x${tag.toString(16)} belongs`)
    if ((found & 0x1f) === 0x1f) this.fail('long tags are not used here')
    const first = this.bytes[start + 1]
    if (first === undefined) this.fail('ends inside a length')
    let length = first
    let head = 2
    if (first & 0x80) {
      const count = first & 0x7f
      if (count === 0 || count > 4) this.fail(count === 0 ? 'indefinite length' : 'length of more than four bytes')
      length = 0
      for (let i = 0; i < count; i++) length = length * 256 + (this.bytes[start + 2 + i] ?? this.fail('ends inside a length'))
      head += count
      if (length < 0x80 || length < 256 ** (count - 1)) this.fail('length is not in its shortest form')
    }
    const end = start + head + length
    if (end > this.bytes.length) this.fail(`value of ${length} bytes exceeds the input`)
    this.#at = end
    const content = this.bytes.subarray(start + head, end)
    return { tag: found, content, raw: this.bytes.subarray(start, end), offset: this.base + start + head }
  }

  /** Reads one element and returns a cursor over its contents. */
  enter(tag: number = tags.sequence): DerReader {
    const { content, offset } = this.next(tag)
    return new DerReader(this.what, content, offset)
  }

  /** Reads the next element only if it has this tag. */
  optional(tag: number): Element | undefined {
    return this.peek === tag ? this.next(tag) : undefined
  }

  /** Refuses trailing bytes. */
  end(): void {
    if (!this.done) this.fail('bytes left over')
  }

  oid(): string {
    const { content } = this.next(tags.oid)
    const arcs: number[] = []
    let arc = 0
    for (const [i, octet] of content.entries()) {
      if (arc > 2 ** 45) this.fail('object identifier too large')
      arc = arc * 128 + (octet & 0x7f)
      if (octet & 0x80) {
        if (i === content.length - 1) this.fail('object identifier ends too early')
        continue
      }
      if (arcs.length === 0) arcs.push(Math.min(Math.floor(arc / 40), 2), arc - Math.min(Math.floor(arc / 40), 2) * 40)
      else arcs.push(arc)
      arc = 0
    }
    if (arcs.length === 0) this.fail('empty object identifier')
    return arcs.join('.')
  }

  /** An INTEGER's bytes, big endian, without the leading zero. */
  integer(): Uint8Array {
    const { content } = this.next(tags.integer)
    if (content.length === 0) this.fail('empty integer')
    return content.length > 1 && content[0] === 0 ? content.subarray(1) : content
  }

  /** A BIT STRING's bytes; unused bits are zero in DER. */
  bits(): Uint8Array {
    const { content } = this.next(tags.bitString)
    const [unused] = content
    if (unused === undefined || unused > 7) this.fail('bit string without a count of unused bits')
    return content.subarray(1)
  }

  /** UTCTime or GeneralizedTime, in UTC. */
  time(): Date {
    const { tag, content } = this.next()
    const written = Buffer.from(content).toString('latin1')
    const short = /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(written)
    const long = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(written)
    const parts = tag === tags.utcTime ? short : tag === tags.generalizedTime ? long : undefined
    if (!parts) this.fail('not a time in UTC')
    const [year, month, day, hour, minute, second] = parts.slice(1).map(Number) as [number, number, number, number, number, number]
    // RFC 5280 §4.1.2.5.1: two digits from 50 on belong to the last century
    const full = tag === tags.utcTime ? year + (year >= 50 ? 1900 : 2000) : year
    return new Date(Date.UTC(full, month - 1, day, hour, minute, second))
  }

  /** Any of the string types allowed in a name. */
  text(): string {
    const { tag, content } = this.next()
    if (tag !== tags.utf8String && tag !== tags.printableString && tag !== tags.ia5String && tag !== 0x14) this.fail('not a string')
    return Buffer.from(content).toString('utf8')
  }
}
