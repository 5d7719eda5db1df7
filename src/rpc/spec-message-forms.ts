/** Forms that are small messages on the wire: addresses, times, URLs, certificates, arbitrary objects. */
import { formatDuration, parseDuration } from '../wire/duration.ts'
import { formatHostPort, parseIpPort } from '../wire/host-port.ts'
import { formatIp, parseIp } from '../wire/ip.ts'
import { tryPrefix } from '../wire/prefix.ts'
import { type Form, known } from './spec-form.ts'
import { readStruct, writeStruct } from './struct.ts'
import { ProtoError, type Reader, type Writer, wireType } from './wire.ts'

const { varint, bytes } = wireType

/** By their names in resource-shapes.txt. */
export const messageForms: Record<string, Form> = {
  ip: {
    wire: bytes,
    zero: () => '',
    write: (writer, value: string) => writer.delimited(() => field(writer, 1, addressBytes(value))),
    read: (reader) => addressText(readFields(reader).bytes[1]),
  },
  cidr: {
    wire: bytes,
    zero: () => '',
    write(writer, value: string) {
      const { bytes: address, bits } = known(tryPrefix(value), value)
      writer.delimited(() => {
        field(writer, 1, address)
        number(writer, 2, bits)
      })
    },
    read(reader) {
      const { bytes, numbers } = readFields(reader)
      return bytes[1] ? `${addressText(bytes[1])}/${numbers[2] ?? 0}` : ''
    },
  },
  hostport: {
    wire: bytes,
    zero: () => '',
    write(writer, value: string) {
      const { address, port } = known(parseIpPort(value), value)
      writer.delimited(() => {
        field(writer, 1, address)
        number(writer, 2, port)
      })
    },
    read(reader) {
      const { bytes, numbers } = readFields(reader)
      if (!bytes[1]) return ''
      const address = addressText(bytes[1])
      return formatHostPort(address, numbers[2] ?? 0)
    },
  },
  duration: {
    wire: bytes,
    zero: () => '0s',
    write(writer, value: string) {
      const nanoseconds = known(parseDuration(value), value)
      writer.delimited(() => {
        number(writer, 1, Math.trunc(nanoseconds / 1e9))
        number(writer, 2, nanoseconds % 1e9)
      })
    },
    read(reader) {
      const { numbers } = readFields(reader)
      return formatDuration((numbers[1] ?? 0) * 1e9 + (numbers[2] ?? 0))
    },
  },
  timestamp: {
    wire: bytes,
    zero: () => '0001-01-01T00:00:00Z',
    write: (writer, value: string) => writer.delimited(() => writeTimestamp(writer, value)),
    read: (reader) => {
      const { numbers } = readFields(reader)
      return timestampText(numbers[1] ?? 0, numbers[2] ?? 0)
    },
  },
  url: {
    wire: bytes,
    zero: () => urlParts(''),
    write: (writer, value: Url) => writer.delimited(() => field(writer, 1, Buffer.from(urlText(value)))),
    read: (reader) => urlParts((readFields(reader).bytes[1] ?? Buffer.alloc(0)).toString()),
  },
  crtkey: pem('crt', 'key'),
  crt: pem('crt'),
  key: pem('key'),
  struct: {
    wire: bytes,
    zero: () => ({}),
    write: (writer, value: object) => writer.delimited(() => writeStruct(writer, value)),
    read: (reader) => readStruct(reader.delimited()),
  },
  /** A Struct in a message of its own, as field 1. */
  wrapped: {
    wire: bytes,
    zero: () => ({}),
    write: (writer, value: object) =>
      writer.delimited(() => {
        writer.tag(1, bytes)
        writer.delimited(() => writeStruct(writer, value))
      }),
    read(reader) {
      const inner = reader.delimited()
      let value = {}
      while (!inner.done) {
        const tag = inner.tag()
        if (tag.field === 1 && tag.type === bytes) value = readStruct(inner.delimited())
        else inner.skip(tag.type)
      }
      return value
    },
  },
  /** Name and value pairs in order; a record here. */
  pairs: {
    wire: bytes,
    zero: () => ({}),
    write: (writer, [name, value]: [string, string]) =>
      writer.delimited(() => {
        field(writer, 1, Buffer.from(name))
        field(writer, 2, Buffer.from(value))
      }),
    read(reader) {
      const { bytes } = readFields(reader)
      return [bytes[1]?.toString() ?? '', bytes[2]?.toString() ?? '']
    },
  },
}

function pem(...keys: ('crt' | 'key')[]): Form {
  return {
    wire: bytes,
    zero: () => Object.fromEntries(keys.map((key) => [key, ''])),
    write: (writer, value: Partial<Record<'crt' | 'key', string>>) =>
      writer.delimited(() => {
        for (const [at, key] of keys.entries()) field(writer, at + 1, Buffer.from(value[key] ?? '', 'base64'))
      }),
    read(reader) {
      const { bytes } = readFields(reader)
      return Object.fromEntries(keys.map((key, at) => [key, bytes[at + 1]?.toString('base64') ?? '']))
    },
  }
}

function addressBytes(text: string): Buffer {
  const [address = '', zone] = text.split('%')
  const raw = Buffer.from(known(parseIp(address), text))
  return zone === undefined ? raw : Buffer.concat([raw, Buffer.from(zone)])
}

function addressText(raw: Buffer | undefined): string {
  if (!raw || raw.length === 0) return ''
  if (raw.length === 4) return formatIp(raw)
  if (raw.length < 16) throw new ProtoError(`address of ${raw.length} bytes`, 0)
  return formatIp(raw.subarray(0, 16)) + (raw.length > 16 ? `%${raw.subarray(16)}` : '')
}

function writeTimestamp(writer: Writer, text: string): void {
  const milliseconds = known(Number.isNaN(Date.parse(text)) ? undefined : Date.parse(text), text)
  const fraction = /\.(\d{1,9})/.exec(text)?.[1] ?? ''
  number(writer, 1, Math.floor(milliseconds / 1000))
  number(writer, 2, Number(fraction.padEnd(9, '0')))
}

function timestampText(seconds: number, nanoseconds: number): string {
  if (Math.abs(seconds) > 8.64e12) throw new ProtoError(`moment ${seconds} seconds from the epoch`, 0)
  const fraction = nanoseconds === 0 ? '' : `.${String(nanoseconds).padStart(9, '0').replace(/0+$/, '')}`
  return new Date(seconds * 1000).toISOString().replace('.000Z', `${fraction}Z`)
}

interface Url {
  scheme?: string
  host?: string
  path?: string
  rawquery?: string
  fragment?: string
}

function urlText({ scheme = '', host = '', path = '', rawquery = '', fragment = '' }: Url): string {
  const start = scheme === '' ? '' : `${scheme}://`
  return `${start}${host}${path}${rawquery === '' ? '' : `?${rawquery}`}${fragment === '' ? '' : `#${fragment}`}`
}

function urlParts(text: string): object {
  const [, scheme = '', host = '', path = '', rawquery = '', fragment = ''] =
    /^(?:([a-z][a-z0-9+.-]*):\/\/)?([^/?#]*)((?:\/[^?#]*)?)(?:\?([^#]*))?(?:#(.*))?$/is.exec(text) ?? []
  return {
    scheme,
    opaque: '',
    user: null,
    host,
    path,
    fragment,
    rawquery,
    rawpath: '',
    rawfragment: '',
    forcequery: false,
    omithost: false,
  }
}

function field(writer: Writer, id: number, value: Uint8Array): void {
  if (value.length === 0) return
  writer.tag(id, bytes)
  writer.bytes(value)
}

function number(writer: Writer, id: number, value: number): void {
  if (value === 0) return
  writer.tag(id, varint)
  writer.varint64(value)
}

/** The fields of a small message: bytes and numbers by field number. */
function readFields(reader: Reader): { bytes: (Buffer | undefined)[]; numbers: (number | undefined)[] } {
  const message = reader.delimited()
  const found = { bytes: [] as (Buffer | undefined)[], numbers: [] as (number | undefined)[] }
  while (!message.done) {
    const tag = message.tag()
    if (tag.field > 8) message.skip(tag.type)
    else if (tag.type === bytes) found.bytes[tag.field] = message.bytes()
    else if (tag.type === varint) found.numbers[tag.field] = message.signed()
    else message.skip(tag.type)
  }
  return found
}
