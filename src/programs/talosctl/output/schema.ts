/** What the JSON and YAML of a command hold: as the reference documents it, and as tests compare it with what is printed. */
import type { Methods } from '../../../rpc/messages.ts'
import { type FieldShape, type MessageType, messageType, methodShape } from '../../../rpc/schema.ts'

/** The type of a value, a list of one type, or an object by its keys. A key such as "<name>" stands for any. */
export type Schema = 'string' | 'number' | 'boolean' | 'base64' | 'time' | 'object' | readonly [Schema] | { readonly [key: string]: Schema }

/** A schema, computed when the reference is written: starting a command costs nothing. */
export type LazySchema = Schema | (() => Schema)

/** A node's message as `withNodes` prints it, for a unary method or a stream; `changed` are keys with a type of their own. */
export function messageSchema(path: keyof Methods, changed: Record<string, Schema> = {}): () => Schema {
  return () => {
    const { reply, serverStreams } = methodShape(path)
    const part = reply.fields.find(({ name }) => name === 'messages')
    return { node: 'string', ...objectSchema(serverStreams || !part ? reply : messageType(part.type)), ...changed }
  }
}

/** The fields of a message by name. */
export function objectSchema({ name, fields }: MessageType, above: readonly string[] = []): Record<string, Schema> {
  const shown = fields.filter(({ type }) => type !== 'common.Metadata')
  return Object.fromEntries(shown.map((field) => [field.name, fieldSchema(field, [...above, name])]))
}

function fieldSchema(field: FieldShape, above: readonly string[]): Schema {
  const one = field.isMessage ? nestedSchema(field.type, above) : scalarSchema(field)
  if (field.mapKey) return { '<key>': one }
  return field.repeated ? [one] : one
}

function nestedSchema(type: string, above: readonly string[]): Schema {
  if (type === 'google.protobuf.Timestamp') return 'time'
  return above.includes(type) ? 'object' : objectSchema(messageType(type), above)
}

/** 64-bit numbers that a double does not hold are decimal strings; enums are numbers. */
function scalarSchema({ type, asText }: FieldShape): Schema {
  if (type === 'string' || asText) return 'string'
  if (type === 'bool') return 'boolean'
  return type === 'bytes' ? 'base64' : 'number'
}

/** The schema as text: a line for each key. */
export function schemaText(schema: LazySchema, indent = ''): string {
  const shape = typeof schema === 'function' ? schema() : schema
  if (typeof shape === 'string') return shape
  if (isList(shape)) return `[${schemaText(shape[0], indent)}]`
  const lines = Object.entries(shape).map(([key, value]) => `${indent}  ${key}: ${schemaText(value, `${indent}  `)}\n`)
  return `{\n${lines.join('')}${indent}}`
}

/** Where a value differs from its schema, as paths; keys that are absent or null are allowed, other keys are not. */
export function mismatches(value: unknown, schema: LazySchema, path = ''): string[] {
  const shape = typeof schema === 'function' ? schema() : schema
  if (value === undefined || value === null) return []
  const differs = [`${path}: ${JSON.stringify(value)} is not ${typeof shape === 'string' ? shape : 'of the schema'}`]
  if (typeof shape === 'string') {
    const kind = shape === 'base64' || shape === 'time' ? 'string' : shape
    return typeof value === kind ? [] : differs
  }
  if (isList(shape)) return Array.isArray(value) ? value.flatMap((one, index) => mismatches(one, shape[0], `${path}[${index}]`)) : differs
  if (typeof value !== 'object' || Array.isArray(value)) return differs
  const others = Object.entries(shape).find(([key]) => key.startsWith('<'))?.[1]
  return Object.entries(value).flatMap(([key, one]) => {
    const own = Object.hasOwn(shape, key) ? shape[key] : others
    return own === undefined ? [`${path}.${key} is not in the schema`] : mismatches(one, own, `${path}.${key}`)
  })
}

const isList = (schema: Schema): schema is readonly [Schema] => Array.isArray(schema)
