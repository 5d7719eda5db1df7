/** Converts a declaration to JSON schema (draft 2020-12) for editors: names, types, enums, patterns and descriptions. */
import { notedAt, pipeOf, type Shape, unwrap } from './shape.ts'
import { insteadOf } from './unsupported.ts'

/** A JSON schema, or a part of one. */
export type JsonSchema = { [key: string]: unknown }

/** The JSON schema of a declaration. What a list or map holds has its description, unless it has one of its own. */
export function jsonSchema(schema: unknown, around?: string): JsonSchema {
  const inner = unwrap(schema)
  const { description = around, pattern } = hintsOf(schema)
  const isShare = notedAt(schema, 'fraction') !== undefined
  const refused = insteadOf(schema)
  const text = [description, refused && `Not supported by this release: ${refused}.`].filter(Boolean).join(' ')
  return {
    ...(text && { description: text }),
    ...shape(inner, description),
    ...(isShare && { type: 'number' }),
    ...(pattern && { pattern }),
  }
}

/** What a declaration specifies besides its type. */
export function hintsOf(schema: unknown): { description?: string | undefined; pattern?: string; needed?: boolean } {
  const hints: { description?: string | undefined; pattern?: string; needed?: boolean } = {}
  for (const step of pipeOf(schema)) {
    if (step.type === 'description') hints.description = step.description
    if (step.type === 'metadata')
      Object.assign(hints, step.metadata?.pattern && { pattern: step.metadata.pattern }, step.metadata?.needed && { needed: true })
  }
  return hints
}

function shape(inner: Shape, description: string | undefined): JsonSchema {
  switch (inner.type) {
    case 'string':
      return { type: 'string' }
    case 'boolean':
      return { type: 'boolean' }
    case 'number':
      return { type: 'integer' }
    case 'picklist':
      return { enum: [...(inner.options ?? [])] }
    case 'literal':
      return { const: inner.literal }
    case 'array':
      return { type: 'array', items: jsonSchema(inner.item, description) }
    case 'record':
      return { type: 'object', additionalProperties: jsonSchema(inner.value, description) }
    case 'union':
      return { anyOf: (inner.options ?? []).map((option) => jsonSchema(option)) }
    case 'object':
    case 'strict_object': {
      const entries = Object.entries<unknown>(inner.entries ?? {})
      const required = entries.filter(([, entry]) => hintsOf(entry).needed).map(([key]) => key)
      return {
        type: 'object',
        properties: Object.fromEntries(entries.map(([key, entry]) => [key, jsonSchema(entry)])),
        additionalProperties: false,
        ...(required.length > 0 && { required }),
      }
    }
    case 'unknown':
      return {}
    default:
      throw new Error(`no JSON schema is known for "${inner.type}"`)
  }
}
