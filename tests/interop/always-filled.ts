/**
 * Which fields of replies the field's machines fill in every case (always-filled.tsv), and what a reply lacks of them. Clients
 * use such fields without a look whether they are there.
 *
 * Columns: the method; a path in its reply, where `[]` is each element of a list and `[+]` each of at least one; and when:
 * - `always`, `with F` or `without F` (F is a field beside the last one of the path), `configured` (the machine has a
 *   configuration). A path below a message that is absent requires nothing: the message has a row of its own.
 * - `sometimes: REASON` and `refused: REASON` name a message that may be absent, and require nothing; `empty` is a reply
 *   without fields.
 *
 * `metadata` is what apid adds to a forwarded reply, and has no rows.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type FieldShape, type MessageType, messageType, methodShape } from '../../src/rpc/schema.ts'

/** One step of a path: a field, and for a list whether it may be empty. */
interface Step {
  readonly field: string
  readonly list: '' | '[]' | '[+]'
}

/** One line of the table. */
export interface FilledField {
  readonly method: string
  readonly path: string
  readonly when: string
}

type Message = Readonly<Record<string, unknown>>

/** The table. */
export const alwaysFilled: readonly FilledField[] = readFileSync(join(import.meta.dir, 'always-filled.tsv'), 'utf8')
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => {
    const [method = '', path = '', when = ''] = line.split('\t')
    return { method, path, when }
  })

/** The steps of a path. */
export function stepsOf(path: string): Step[] {
  if (path === '') return []
  return path.split('.').map((step) => {
    const [, field = '', list = ''] = /^(\w+)(\[\+?\])?$/.exec(step) ?? []
    return { field, list: list as Step['list'] }
  })
}

/** The fields of the table that replies of a method lack, with the place of each: `messages[0].version.tag`. */
export function unfilled(method: string, replies: readonly unknown[], { configured = true } = {}): string[] {
  const { reply: type } = methodShape(method)
  const rows = alwaysFilled.filter((row) => row.method === method && !/^(sometimes|refused|empty)/.test(row.when))
  const required = rows.filter(({ when }) => when !== 'configured' || configured)
  return [...new Set(replies.flatMap((reply) => required.flatMap(({ path, when }) => lacks(type, reply as Message, stepsOf(path), when))))]
}

function lacks(type: MessageType, message: Message, [step, ...rest]: readonly Step[], when: string): string[] {
  const field = type.fields.find(({ name }) => name === step!.field)
  if (!field) throw new Error(`${type.name} has no field "${step!.field}"`)
  const value = message[field.name]
  if (rest.length === 0 && step!.list === '') return isSet(field, value) || !applies(type, message, when) ? [] : [field.name]
  const elements = (step!.list === '' ? [value] : (value ?? [])) as readonly unknown[]
  if (step!.list === '[+]' && elements.length === 0) return applies(type, message, when) || rest.length > 0 ? [`${field.name}[0]`] : []
  return elements.flatMap((element, index) => {
    const place = step!.list === '' ? field.name : `${field.name}[${index}]`
    if (rest.length === 0 || element === undefined || element === null) return []
    return lacks(messageType(field.type), element as Message, rest, when).map((below) => `${place}.${below}`)
  })
}

function applies(type: MessageType, message: Message, when: string): boolean {
  const [, without, name] = /^with(out)? (\w+)$/.exec(when) ?? []
  if (!name) return true
  const other = type.fields.find((field) => field.name === name)
  if (!other) throw new Error(`${type.name} has no field "${name}"`)
  return isSet(other, message[name]) !== (without !== undefined)
}

/** Whether a field was sent: one with explicit presence also with its default. */
function isSet({ explicit, isMessage }: FieldShape, value: unknown): boolean {
  if (value === undefined || value === null) return false
  if (explicit || isMessage) return true
  if (typeof value === 'string' || value instanceof Uint8Array || Array.isArray(value)) return value.length > 0 && value !== '0'
  return Boolean(value)
}
