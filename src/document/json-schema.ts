/** Converts a declaration to JSON schema (draft 2020-12) for editors: names, types, enums, patterns and descriptions. */
import { pipeOf, type Shape, unwrap } from './shape.ts'
import { insteadOf } from './unsupported.ts'

/** A JSON schema, or a part of one. */
export type JsonSchema = { [key: string]: unknown }

/** The description of a key, by its path: `a.b[].c{}.d`. */
export type Describe = (path: string) => string | undefined

/** The JSON schema of a declaration. */
export function jsonSchema(schema: unknown, describe: Describe, path = ''): JsonSchema {
  const inner = unwrap(schema)
  const { description: own, pattern } = hintsOf(schema)
  const description = own ?? (path ? describe(path) : undefined)
  const refused = insteadOf(schema)
  const text = [description, refused && `Not supported by this release: ${refused}.`].filter(Boolean).join(' ')
  return { ...(text && { description: text }), ...shape(inner, describe, path), ...(pattern && { pattern }) }
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

function shape(inner: Shape, describe: Describe, path: string): JsonSchema {
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
      return { type: 'array', items: jsonSchema(inner.item, describe, `${path}[]`) }
    case 'record':
      return { type: 'object', additionalProperties: jsonSchema(inner.value, describe, `${path}{}`) }
    case 'union':
      return { anyOf: (inner.options ?? []).map((option) => jsonSchema(option, () => undefined, path)) }
    case 'object':
    case 'strict_object': {
      const entries = Object.entries<unknown>(inner.entries ?? {})
      const required = entries.filter(([, entry]) => hintsOf(entry).needed).map(([key]) => key)
      return {
        type: 'object',
        properties: Object.fromEntries(entries.map(([key, entry]) => [key, jsonSchema(entry, describe, path ? `${path}.${key}` : key)])),
        additionalProperties: false,
        ...(required.length > 0 && { required }),
      }
    }
    case 'unknown':
      return {}
    default:
      throw new Error(`no JSON schema is known for "${inner.type}" at "${path}"`)
  }
}
