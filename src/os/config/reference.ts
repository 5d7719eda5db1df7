/** The reference of the configuration from its declarations: a JSON schema for editors and pages for readers. */

import { hintsOf, type JsonSchema, jsonSchema } from '../../document/json-schema.ts'
import type { DocumentKind } from '../../document/kind.ts'
import { notedAt, unwrap } from '../../document/shape.ts'
import { insteadOf } from '../../document/unsupported.ts'
import { documentKinds } from './kinds.ts'

/** The schema of one document of a configuration; a stream of them is checked document by document. */
export function configSchema(): JsonSchema {
  const definitions = Object.fromEntries([...documentKinds.values()].map((kind) => [kind.kind, documentSchema(kind)]))
  const named = [...documentKinds.values()].filter(({ apiVersion }) => apiVersion !== '')
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Machine configuration',
    description:
      'One document of a machine configuration: the first describes the machine and its cluster, the others are identified by their kind.',
    type: 'object',
    if: { required: ['kind'] },
    // Each kind is checked alone, so that an editor's message is about it and not about all of them.
    // biome-ignore lint/suspicious/noThenProperty: it is the word of JSON schema
    then: {
      properties: { kind: { enum: named.map(({ kind }) => kind) } },
      allOf: named.map(({ kind }) => ({
        if: { properties: { kind: { const: kind } } },
        // biome-ignore lint/suspicious/noThenProperty: it is the word of JSON schema
        then: { $ref: `#/$defs/${kind}` },
      })),
    },
    else: { $ref: '#/$defs/v1alpha1' },
    $defs: definitions,
  }
}

function documentSchema(kind: DocumentKind): JsonSchema {
  const schema = jsonSchema(kind.schema)
  const { properties, required = [], ...rest } = schema as { properties: JsonSchema; required?: string[] }
  if (kind.apiVersion === '') return { description: kind.description, ...schema }
  return {
    description: kind.notYet ? `${kind.description} Not supported by this release: ${kind.notYet}.` : kind.description,
    ...rest,
    properties: { apiVersion: { const: kind.apiVersion }, kind: { const: kind.kind }, ...properties },
    required: [...new Set(['apiVersion', 'kind', ...(kind.nameKey ? [kind.nameKey] : []), ...required])],
  }
}

/** The page that names every kind and key. */
export function referencePage(): string {
  const kinds = [...documentKinds.values()]
  const contents = kinds.map(({ kind, description }) => `- [${kind}](#${kind.toLowerCase()}): ${description}`)
  return [
    '# Machine configuration: every document and key',
    '',
    'Made from the declarations by `bun run docs`; do not edit. `[]` stands for each item of a list, `{}` for each key of a map.',
    'Every key may be left out but those marked *needed*. For editors there is [config.schema.json](config.schema.json).',
    '',
    ...contents,
    ...kinds.flatMap(page),
    '',
  ].join('\n')
}

function page(kind: DocumentKind): string[] {
  const head = kind.apiVersion === '' ? [] : ['', '```yaml', `apiVersion: ${kind.apiVersion}`, `kind: ${kind.kind}`, '```']
  const rows = [...keys(kind.schema, '')].map(({ path, schema }) => {
    const { description = '', needed } = hintsOf(schema)
    const marks = needed || path === kind.nameKey ? ' *needed*' : ''
    const refused = insteadOf(schema)
    const text = refused ? `${description} **Not supported:** ${refused}.` : description
    return `| \`${path}\` | ${typeName(schema)}${marks} | ${cell(text)} |`
  })
  const refused = kind.notYet ? ['', `**Not supported by this release:** ${kind.notYet}.`] : []
  return ['', `## ${kind.kind}`, '', kind.description, ...refused, ...head, '', '| key | value | what for |', '|---|---|---|', ...rows]
}

const cell = (text: string) => text.replaceAll('|', '\\|')

/** Every key below a declaration with its path. */
export function* keys(schema: unknown, path: string): Generator<{ path: string; schema: unknown }> {
  const inner = unwrap(schema)
  for (const [key, entry] of Object.entries<unknown>(inner.entries ?? {})) {
    const at = path ? `${path}.${key}` : key
    yield { path: at, schema: entry }
    yield* keys(entry, at)
  }
  if (inner.type === 'array') yield* keys(inner.item, `${path}[]`)
  if (inner.type === 'record') yield* keys(inner.value, `${path}{}`)
}

/** The type of a value in a few words. */
export function typeName(schema: unknown): string {
  const inner = unwrap(schema)
  if (inner.type === 'picklist') return (inner.options ?? []).map((word) => `\`${word}\``).join(', ')
  if (inner.type === 'literal') return `\`${inner.literal}\``
  if (inner.type === 'array') return `list of ${typeName(inner.item)}`
  if (inner.type === 'record') return `map to ${typeName(inner.value)}`
  if (inner.type === 'union') return (inner.options ?? []).map(typeName).join(' or ')
  const hint = notedAt(schema, 'pattern') ? ' of a form' : ''
  return (
    (
      {
        string: `text${hint}`,
        number: 'number',
        boolean: 'true or false',
        object: 'map',
        unknown: 'anything',
        instance: 'bytes',
      } as Record<string, string>
    )[inner.type] ?? inner.type
  )
}
