/** google.protobuf.Struct: any JSON object as a message. */
import { ProtoError, type Reader, type Writer, wireType } from './wire.ts'

const maxDepth = 64

/** Writes the fields of a Struct. */
export function writeStruct(writer: Writer, object: object): void {
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue
    writer.tag(1, wireType.bytes)
    writer.delimited(() => {
      writer.tag(1, wireType.bytes)
      writer.string(key)
      writer.tag(2, wireType.bytes)
      writer.delimited(() => writeValue(writer, value))
    })
  }
}

function writeValue(writer: Writer, value: unknown): void {
  if (typeof value === 'number' || typeof value === 'bigint') {
    writer.tag(2, wireType.fixed64)
    writer.double(Number(value))
  } else if (typeof value === 'string') {
    writer.tag(3, wireType.bytes)
    writer.string(value)
  } else if (typeof value === 'boolean') {
    writer.tag(4, wireType.varint)
    writer.varint(value ? 1 : 0)
  } else if (Array.isArray(value)) {
    writer.tag(6, wireType.bytes)
    writer.delimited(() => {
      for (const item of value) {
        writer.tag(1, wireType.bytes)
        writer.delimited(() => writeValue(writer, item))
      }
    })
  } else if (typeof value === 'object' && value !== null) {
    writer.tag(5, wireType.bytes)
    writer.delimited(() => writeStruct(writer, value))
  } else {
    writer.tag(1, wireType.varint)
    writer.varint(0)
  }
}

/** Reads a Struct as an object. Throws ProtoError. */
export function readStruct(reader: Reader, depth = 0): Record<string, unknown> {
  if (depth > maxDepth) throw new ProtoError('struct nested too deep', reader.offset)
  const pairs: [string, unknown][] = []
  while (!reader.done) {
    const tag = reader.tag()
    if (tag.field !== 1 || tag.type !== wireType.bytes) reader.skip(tag.type)
    else pairs.push(readEntry(reader.delimited(), depth))
  }
  return Object.fromEntries(pairs)
}

function readEntry(entry: Reader, depth: number): [string, unknown] {
  let key = ''
  let value: unknown = null
  while (!entry.done) {
    const tag = entry.tag()
    if (tag.type !== wireType.bytes) entry.skip(tag.type)
    else if (tag.field === 1) key = entry.string()
    else if (tag.field === 2) value = readValue(entry.delimited(), depth)
    else entry.skip(tag.type)
  }
  return [key, value]
}

function readValue(reader: Reader, depth: number): unknown {
  let value: unknown = null
  while (!reader.done) {
    const { field, type } = reader.tag()
    if (field === 2 && type === wireType.fixed64) value = reader.double()
    else if (field === 3 && type === wireType.bytes) value = reader.string()
    else if (field === 4 && type === wireType.varint) value = reader.varint() !== 0
    else if (field === 5 && type === wireType.bytes) value = readStruct(reader.delimited(), depth + 1)
    else if (field === 6 && type === wireType.bytes) value = readList(reader.delimited(), depth + 1)
    else reader.skip(type)
  }
  return value
}

function readList(reader: Reader, depth: number): unknown[] {
  if (depth > maxDepth) throw new ProtoError('struct nested too deep', reader.offset)
  const list: unknown[] = []
  while (!reader.done) {
    const { field, type } = reader.tag()
    if (field === 1 && type === wireType.bytes) list.push(readValue(reader.delimited(), depth))
    else reader.skip(type)
  }
  return list
}
