/** The forms of a spec's values: in the store and in YAML, and on the wire. */
import { YAML } from 'bun'
import { messageOf } from '../wire/error-message.ts'
import { formatMac, parseMac } from '../wire/ip.ts'
import { enumNames } from './resource-shapes.ts'
import { type Form, known } from './spec-form.ts'
import { messageForms } from './spec-message-forms.ts'
import { ProtoError, type Reader, wireType } from './wire.ts'

const { varint, bytes, fixed64 } = wireType

/** Every form except messages, by its name in resource-shapes.txt. */
export const forms: Record<string, Form> = {
  ...messageForms,
  string: { wire: bytes, zero: () => '', write: (writer, value: string) => writer.string(value), read: (reader) => reader.string() },
  bool: {
    wire: varint,
    zero: () => false,
    write: (writer, value: boolean) => writer.varint(value ? 1 : 0),
    read: (reader) => reader.varint() !== 0,
  },
  int: { wire: varint, zero: () => 0, write: (writer, value: number) => writer.varint64(value), read: (reader) => reader.signed() },
  uint: { wire: varint, zero: () => 0, write: (writer, value: number) => writer.varint64(value), read: (reader) => reader.varint() },
  double: { wire: fixed64, zero: () => 0, write: (writer, value: number) => writer.double(value), read: (reader) => reader.double() },
  bytes: {
    wire: bytes,
    zero: () => Buffer.alloc(0),
    write: (writer, value: Uint8Array) => writer.bytes(value),
    read: (reader) => Buffer.from(reader.bytes()),
  },
  text: { wire: bytes, zero: () => '', write: (writer, value: string) => writer.string(value), read: (reader) => reader.string() },
  base64: {
    wire: bytes,
    zero: () => '',
    write: (writer, value: string) => writer.bytes(Buffer.from(value, 'base64')),
    read: (reader) => reader.bytes().toString('base64'),
  },
  mac: {
    wire: bytes,
    zero: () => '',
    write: (writer, value: string) => writer.bytes(known(parseMac(value), value)),
    read: (reader) => formatMac(reader.bytes()),
  },
  enum: {
    wire: varint,
    zero: (of) => enumNames(of).byNumber.get(0) ?? '',
    write: (writer, value: string, of) => writer.varint64(enumNumber(value, of)),
    read: (reader, of) => enumName(reader.signed(), of),
  },
  flags: {
    wire: varint,
    zero: () => '',
    write: (writer, value: string, of) =>
      writer.varint(value.split(',').reduce((sum, name) => (sum | enumNumber(name.trim(), of)) >>> 0, 0)),
    read: (reader, of) => flagNames(reader.varint(), of),
  },
  yaml: {
    wire: bytes,
    zero: () => null,
    write: (writer, value) => writer.string(YAML.stringify(value, null, 4)),
    read: (reader) => readYaml(reader),
  },
  /** An expression: YAML has its source; the parsed form on the wire is left out. */
  cel: {
    wire: bytes,
    zero: () => '',
    write: () => {},
    read(reader) {
      reader.skip(bytes)
      return ''
    },
  },
}

function enumNumber(value: string, of: string): number {
  const number = enumNames(of).byName.get(value)
  if (number !== undefined) return number
  const digits = /^(?:\w+\()?(-?\d+)\)?$/.exec(value)
  return known(digits ? Number(digits[1]) : undefined, value)
}

function enumName(number: number, of: string): string {
  const { byNumber, digits } = enumNames(of)
  return byNumber.get(number) ?? (digits ? String(number) : `${of.slice(of.lastIndexOf('.') + 1)}(${number})`)
}

function flagNames(bits: number, of: string): string {
  return [...enumNames(of).byNumber]
    .filter(([bit]) => bit !== 0 && (bits & bit) !== 0)
    .map(([, name]) => name)
    .join(',')
}

function readYaml(reader: Reader): unknown {
  const text = reader.string()
  try {
    return YAML.parse(text)
  } catch (error) {
    throw new ProtoError(`YAML that cannot be read: ${messageOf(error)}`, reader.offset)
  }
}
