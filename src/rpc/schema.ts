/**
 * The contents of the .proto files, from the text that `bun run proto` generates (schema.txt): one line per message, one
 * line per method. A line is parsed when its name is first used; nothing else is read, so that starting costs nothing.
 */
import text from './schema.txt' with { type: 'text' }

/** One field of a message. */
export interface FieldShape {
  readonly name: string
  readonly id: number
  /** The name of a scalar, or the full name of a message; enums are int32. */
  readonly type: string
  readonly isMessage: boolean
  readonly repeated: boolean
  /** The scalar type of a map's keys. */
  readonly mapKey?: string
  /** Explicit presence: sent even when it equals the default. */
  readonly explicit: boolean
  /** A 64-bit number as a decimal string. */
  readonly asText: boolean
}

/** A message: its fields by number. */
export interface MessageType {
  readonly name: string
  readonly fields: readonly FieldShape[]
}

/** One method of a service. */
export interface MethodShape {
  /** `/machine.MachineService/Hostname` */
  readonly path: string
  readonly request: MessageType
  readonly reply: MessageType
  readonly clientStreams: boolean
  readonly serverStreams: boolean
  /** Maximum bytes of one request message. */
  readonly requestLimit: number
  /** Declared without side effects. Every other method counts as changing something. */
  readonly readOnly: boolean
}

const messages = new Map<string, MessageType>()
const methods = new Map<string, MethodShape>()

/** The message with this full name. Throws when no .proto file has it: a bug of the caller. */
export function messageType(name: string): MessageType {
  let type = messages.get(name)
  if (!type) {
    const fields = line(name).split(', ')
    type = { name, fields: fields[0] === '' ? [] : fields.map(parseField) }
    messages.set(name, type)
  }
  return type
}

/** The method with this path, with or without the leading slash. Throws when no .proto file has it. */
export function methodShape(path: string): MethodShape {
  const full = path.startsWith('/') ? path : `/${path}`
  let shape = methods.get(full)
  if (!shape) {
    const [kind = '', request = '', reply = '', limit, effect] = line(full).split(' ')
    shape = {
      path: full,
      request: messageType(request),
      reply: messageType(reply),
      clientStreams: kind === 'client' || kind === 'bidi',
      serverStreams: kind === 'server' || kind === 'bidi',
      requestLimit: Number(limit),
      readOnly: effect === 'reads',
    }
    methods.set(full, shape)
  }
  return shape
}

function line(name: string): string {
  const start = /^[\w./]+$/.test(name) ? text.indexOf(`\n${name}: `) : -1
  if (start < 0) throw new Error(`"${name}" is in none of the .proto files`)
  return text.slice(start + name.length + 3, text.indexOf('\n', start + 1))
}

/** `name number type`; suffixes of the type: `*` list, `?` explicit presence, `'` decimal string, `<key>` map. */
function parseField(field: string): FieldShape {
  const [name = '', id = '', written = ''] = field.split(' ')
  const match = /^([\w.]+)(?:<(\w+)>)?(\*?)(\??)('?)$/.exec(written)
  if (!match) throw new Error(`schema.txt: cannot read "${field}"`)
  const [, type = ''] = match
  return {
    name,
    id: Number(id),
    type,
    isMessage: type.includes('.'),
    repeated: match[3] === '*',
    ...(match[2] && { mapKey: match[2] }),
    explicit: match[4] === '?',
    asText: match[5] === "'",
  }
}
