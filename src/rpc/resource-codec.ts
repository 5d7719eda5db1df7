/** Converts the spec of any resource between the store's plain object (keyed like its YAML) and its message on the wire. */
import { messageFields, type PlacedField, type SpecField, specFields } from './resource-shapes.ts'
import type { Form } from './spec-form.ts'
import { forms } from './spec-forms.ts'
import { ProtoError, Reader, Writer, wireType } from './wire.ts'

type Plain = Record<string, unknown>

/** Encodes a spec as the message of its type; empty for a type without one. */
export function encodeSpec(type: string, spec: unknown): Buffer {
  const writer = new Writer()
  const fields = specFields(type) ?? []
  writeFields(writer, fields, fields[0]?.key === '.' ? { '.': spec } : (spec as Plain))
  return writer.finish()
}

/** Decodes a spec and fills in every key that is neither nullable nor omitted when empty. Throws ProtoError. */
export function decodeSpec(type: string, bytes: Uint8Array): unknown {
  const fields = specFields(type) ?? []
  const spec = readFields(new Reader(bytes), fields, 0)
  return fields[0]?.key === '.' ? spec['.'] : spec
}

function writeFields(writer: Writer, fields: readonly PlacedField[], spec: Plain): void {
  const insides = new Map<number, PlacedField[]>()
  for (const field of fields) {
    if (field.inside === 0) writeField(writer, field, spec[field.key])
    else insides.set(field.inside, [...(insides.get(field.inside) ?? []), field])
  }
  for (const [id, inner] of insides) {
    if (inner.every(({ key }) => spec[key] === undefined || spec[key] === '')) continue
    writer.tag(id, wireType.bytes)
    writer.delimited(() => {
      for (const field of inner) writeField(writer, field, spec[field.key])
    })
  }
}

function writeField(writer: Writer, field: SpecField, value: unknown): void {
  if (field.id === 0 || value === undefined || value === null) return
  if (field.form === 'pairs') for (const pair of Object.entries(value)) writeValue(writer, field.id, field, pair)
  else if (field.many === 'map') writeMap(writer, field, value as Plain)
  else if (field.many === 'list') writeList(writer, field, value as unknown[])
  else if (field.nullable || !isZero(field, value)) writeValue(writer, field.id, field, value)
}

function writeList(writer: Writer, field: SpecField, values: readonly unknown[]): void {
  const form = forms[field.form]
  if (values.length === 0) return
  if (!form || form.wire === wireType.bytes) {
    for (const value of values) writeValue(writer, field.id, field, value)
    return
  }
  writer.tag(field.id, wireType.bytes)
  writer.delimited(() => {
    for (const value of values) form.write(writer, value as never, field.of)
  })
}

function writeMap(writer: Writer, field: SpecField, entries: Plain): void {
  for (const [key, value] of Object.entries(entries)) {
    writer.tag(field.id, wireType.bytes)
    writer.delimited(() => {
      writer.tag(1, wireType.bytes)
      writer.string(key)
      writeValue(writer, 2, field, value)
    })
  }
}

function writeValue(writer: Writer, id: number, field: SpecField, value: unknown): void {
  if (field.form === 'message') {
    writer.tag(id, wireType.bytes)
    writer.delimited(() => writeFields(writer, messageFields(field.of), value as Plain))
    return
  }
  if (field.form === 'cel' || (value === '' && field.form !== 'string')) return
  const form = formOf(field)
  writer.tag(id, form.wire)
  form.write(writer, value as never, field.of)
}

/** Whether a value is the default of its key. */
export function isZero(field: SpecField, value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return value instanceof Uint8Array && value.length === 0
  return value === forms[field.form]?.zero(field.of) || value === ''
}

/** The default of a key. */
export function zeroOf(field: SpecField): unknown {
  if (field.many === 'list') return []
  if (field.many === 'map') return {}
  if (field.form !== 'message') return formOf(field).zero(field.of)
  return filled(messageFields(field.of), {})
}

/** A spec with every key that YAML always shows. */
export function filled(fields: readonly SpecField[], spec: Plain): Plain {
  for (const field of fields) if (spec[field.key] === undefined && !field.omitted && !field.nullable) spec[field.key] = zeroOf(field)
  return spec
}

function readFields(reader: Reader, fields: readonly PlacedField[], depth: number, inside = 0): Plain {
  if (depth > 32) throw new ProtoError('spec nested too deep', reader.offset)
  const spec: Plain = {}
  while (!reader.done) {
    const tag = reader.tag()
    const field = fields.find(({ id, inside: place }) => id === tag.field && place === inside)
    if (field) readField(reader, tag.type, field, spec, depth)
    else if (tag.type === wireType.bytes && inside === 0 && fields.some((other) => other.inside === tag.field))
      Object.assign(spec, readFields(reader.delimited(), fields, depth + 1, tag.field))
    else reader.skip(tag.type)
  }
  return inside === 0 ? filled(fields, spec) : spec
}

function readField(reader: Reader, wire: number, field: SpecField, spec: Plain, depth: number): void {
  const form = forms[field.form]
  if (field.form === 'pairs') {
    const [name, value] = formOf(field).read(reader, '') as [string, string]
    spec[field.key] = { ...(spec[field.key] as object), [name]: value }
  } else if (field.many === 'map') {
    const [key, value] = readEntry(reader, wire, field, depth)
    spec[field.key] = { ...(spec[field.key] as object), [key]: value }
  } else if (field.many === 'list') {
    const list = (spec[field.key] as unknown[] | undefined) ?? []
    spec[field.key] = list
    if (form && wire === wireType.bytes && form.wire !== wireType.bytes) {
      const packed = reader.delimited()
      while (!packed.done) list.push(form.read(packed, field.of))
    } else list.push(readValue(reader, wire, field, depth))
  } else spec[field.key] = readValue(reader, wire, field, depth)
}

function formOf({ form, key }: SpecField): Form {
  const found = forms[form]
  if (!found) throw new TypeError(`key "${key}" has the unknown form "${form}"`)
  return found
}

function readEntry(reader: Reader, wire: number, field: SpecField, depth: number): [string, unknown] {
  if (wire !== wireType.bytes) throw new ProtoError(`key "${field.key}" has an unexpected wire type`, reader.offset)
  const entry = reader.delimited()
  let key = ''
  let value: unknown
  while (!entry.done) {
    const tag = entry.tag()
    if (tag.field === 1 && tag.type === wireType.bytes) key = entry.string()
    else if (tag.field === 2) value = readValue(entry, tag.type, field, depth)
    else entry.skip(tag.type)
  }
  return [key, value ?? zeroOf({ ...field, many: 'one' })]
}

function readValue(reader: Reader, wire: number, field: SpecField, depth: number): unknown {
  const form = forms[field.form]
  if (wire !== (form?.wire ?? wireType.bytes)) throw new ProtoError(`key "${field.key}" has an unexpected wire type`, reader.offset)
  return form ? form.read(reader, field.of) : readFields(reader.delimited(), messageFields(field.of), depth + 1)
}
