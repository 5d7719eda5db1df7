/** The wire shapes of resource specs (resource-shapes.txt), parsed on first use. */
import text from './resource-shapes.txt' with { type: 'text' }

/** One key of a spec. */
export interface SpecField {
  readonly key: string
  /** Field number; 0 for a key that exists in YAML only. */
  readonly id: number
  readonly form: string
  /** The message or enum type of the form. */
  readonly of: string
  readonly many: 'one' | 'list' | 'map'
  /** Omitted from YAML when empty. */
  readonly omitted: boolean
  /** May be absent: null in YAML, or omitted. */
  readonly nullable: boolean
}

/** A field, and the field whose message contains it where YAML flattens that message. */
export type PlacedField = SpecField & { readonly inside: number }

interface Tables {
  readonly types: ReadonlyMap<string, string>
  readonly messages: ReadonlyMap<string, readonly PlacedField[]>
  readonly enums: ReadonlyMap<string, EnumNames>
}

/** An enum's names by number, and numbers by name. */
export interface EnumNames {
  readonly byNumber: ReadonlyMap<number, string>
  readonly byName: ReadonlyMap<string, number>
  /** Numbers without a name are written as digits. */
  readonly digits: boolean
}

let tables: Tables | undefined

/** The keys of a resource type's spec: empty for one without keys, undefined for an unknown type. */
export function specFields(type: string): readonly PlacedField[] | undefined {
  tables ??= parse()
  const message = tables.types.get(type)
  return message === undefined ? undefined : message === '' ? [] : messageFields(message)
}

/** The keys of a message that specs contain. */
export function messageFields(message: string): readonly PlacedField[] {
  tables ??= parse()
  return tables.messages.get(message) ?? []
}

/** The names of an enum. */
export function enumNames(name: string): EnumNames {
  tables ??= parse()
  const names = tables.enums.get(name)
  if (!names) throw new Error(`enum "${name}" is not in the table of resource specs`)
  return names
}

function parse(): Tables {
  const types = new Map<string, string>()
  const messages = new Map<string, PlacedField[]>()
  const enums = new Map<string, EnumNames>()
  let section = ''
  let fields: PlacedField[] = []
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const [name = '', value = ''] = line.split(' ')
    if (line.startsWith('[')) section = line
    else if (section === '[types]') types.set(name, value)
    else if (section === '[enums]') enums.set(name, parseEnum(line.slice(name.length + 1).split('|')))
    else if (line.startsWith('  ')) fields.push(parseField(line.trim()))
    else {
      fields = []
      messages.set(line, fields)
    }
  }
  return { types, messages, enums }
}

function parseField(line: string): PlacedField {
  const [key = '', number = '', written = ''] = line.split(' ')
  const match = /^([a-z]\w*)(?::([\w.]+))?(\[\]|\{\})?(\??)(\*?)$/.exec(written)
  if (!match) throw new Error(`resource-shapes.txt: cannot read "${line}"`)
  const [outer = '0', inner] = number.split('.')
  return {
    key,
    id: Number(inner ?? outer),
    inside: inner === undefined ? 0 : Number(outer),
    form: match[1] ?? '',
    of: match[2] ?? '',
    many: match[3] === '[]' ? 'list' : match[3] === '{}' ? 'map' : 'one',
    omitted: match[4] === '?',
    nullable: match[5] === '*',
  }
}

function parseEnum(words: string[]): EnumNames {
  const pairs = words.map((word): [number, string] => [Number(word.slice(0, word.indexOf('='))), word.slice(word.indexOf('=') + 1)])
  const named = pairs.filter(([number]) => !Number.isNaN(number))
  return {
    byNumber: new Map(named),
    byName: new Map(named.map(([number, name]) => [name, number])),
    digits: named.length < pairs.length,
  }
}
