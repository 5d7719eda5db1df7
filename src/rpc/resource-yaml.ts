/** A spec as YAML, as `get -o yaml` shows it: keys in order, empty values shown or omitted as their key specifies. */
import { Document, visit } from 'yaml'
import { isZero, zeroOf } from './resource-codec.ts'
import { messageFields, type SpecField, specFields } from './resource-shapes.ts'

type Plain = Record<string, unknown>

/** The YAML of a spec, indented by four as the field's tools do. */
export function specYaml(type: string, spec: unknown): string {
  return yamlText(shownSpec(type, spec))
}

/** A spec as shown: a plain value ready for YAML or JSON. */
export function shownSpec(type: string, spec: unknown): unknown {
  const fields = specFields(type)
  if (!fields || fields[0]?.key === '.') return spec
  return shown(fields, (spec ?? {}) as Plain)
}

/** Any plain value as YAML: indented by four, long lines not folded, multi-line strings as literal blocks. */
export function yamlText(value: unknown): string {
  if (typeof value === 'string' && value.includes('\n')) return literalBlock(value)
  const document = new Document(value, { aliasDuplicateObjects: false })
  visit(document, {
    Scalar(_, scalar) {
      if (typeof scalar.value === 'string' && scalar.value.includes('\n')) scalar.type = 'BLOCK_LITERAL'
    },
  })
  return document.toString({ indent: 4, lineWidth: 0, nullStr: 'null' })
}

/** A string alone in its document: indented, so that a line \`---\` in it does not end the document. */
function literalBlock(text: string): string {
  const keep = text.endsWith('\n\n') || text === '\n' ? '+' : text.endsWith('\n') ? '' : '-'
  const indent = /^[ \n]/.test(text) ? '4' : ''
  const lines = text.replace(/\n$/, '').split('\n')
  return `|${indent}${keep}\n${lines.map((line) => (line === '' ? '' : `    ${line}`)).join('\n')}\n`
}

function shown(fields: readonly SpecField[], spec: Plain): Plain {
  const out: Plain = {}
  for (const field of fields) {
    const value = spec[field.key]
    const absent = value === undefined || value === null
    if (field.omitted && (absent || hidden(field) || (!field.nullable && isEmpty(field, value)))) continue
    if (absent) out[field.key] = field.nullable ? null : present(field, zeroOf(field))
    else out[field.key] = present(field, value)
  }
  return out
}

/** The field's tools never show a single optional address: to their encoder it always looks empty. */
function hidden({ form, many }: SpecField): boolean {
  return many === 'one' && (form === 'ip' || form === 'cidr' || form === 'hostport')
}

function present(field: SpecField, value: unknown): unknown {
  if (field.form === 'bytes' && value instanceof Uint8Array) return [...value]
  if (field.form !== 'message') return value
  const fields = messageFields(field.of)
  if (field.many === 'list') return (value as Plain[]).map((item) => shown(fields, item))
  if (field.many === 'map')
    return Object.fromEntries(Object.entries(value as Plain).map(([key, item]) => [key, shown(fields, item as Plain)]))
  return shown(fields, value as Plain)
}

function isEmpty(field: SpecField, value: unknown): boolean {
  if (Array.isArray(value) || field.many === 'list') return (value as unknown[]).length === 0
  if (typeof value === 'object' && value !== null && !(value instanceof Uint8Array)) return Object.keys(value).length === 0
  return isZero(field, value)
}
