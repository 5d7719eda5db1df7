/** A line of a service's log as a JSON object, in the field's format `json_lines`. */

const levels: Readonly<Record<string, string>> = {
  debug: 'debug',
  info: 'info',
  warn: 'warn',
  warning: 'warn',
  error: 'error',
  dpanic: 'dpanic',
  panic: 'panic',
  fatal: 'fatal',
}
const severe = new Set(['error', 'dpanic', 'panic', 'fatal', 'warn'])

/** Numbers above are milliseconds: as seconds they lie beyond the year 3000. */
const year3000 = 32_503_680_000

/** What is sent with every line of a destination. */
export interface MessageContext {
  readonly service: string
  /** Fields that override all others. */
  readonly tags: Readonly<Record<string, string>>
  readonly now: Date
  /** The line was longer than what is sent of it. */
  readonly cut?: boolean
}

/** One line, without its newline, as JSON. */
export function serviceMessage(line: string, { service, tags, now, cut = false }: MessageContext): string {
  const own = ownFormat.exec(line)
  const [prefix = '', stamp, low, high] = own ?? []
  const { text, fields } = parsed(own ? line.slice(prefix.length) : line)
  const time = stamp ?? timeOf(fields)
  let level = low ?? high?.toLowerCase() ?? levelOf(fields) ?? 'info'
  let msg = typeof fields.msg === 'string' ? `${text} ${fields.msg}`.trim() : text
  if (typeof fields.err === 'string' && fields.err !== '') {
    if (!severe.has(level)) level = 'warn'
    msg += `: ${fields.err}`
    delete fields.err
  }
  return JSON.stringify({
    ...fields,
    ...(cut && { truncated: true }),
    msg,
    'talos-time': time ?? now.toISOString(),
    'talos-level': level,
    'talos-service': service,
    ...tags,
  })
}

/** A line of this system's own components: a time, perhaps a level, then the text. */
const ownFormat = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z) (?:(debug|warn|error): |(DEBUG|INFO|WARN|ERROR) +)?/

/** The text of a line, and the fields of a JSON object that it consists of or ends with. */
function parsed(line: string): { text: string; fields: Record<string, unknown> } {
  const at = line.indexOf('{')
  if (at >= 0 && /\}\s*$/.test(line))
    try {
      return { text: line.slice(0, at).trim(), fields: JSON.parse(line.slice(at)) }
    } catch {
      // It is text with a brace in it.
    }
  return { text: line.trim(), fields: {} }
}

/** Takes the time out of the fields: RFC 3339, or a number of seconds or milliseconds. */
function timeOf(fields: Record<string, unknown>): string | undefined {
  for (const key of ['time', 'ts']) {
    const value = fields[key]
    const time = typeof value === 'number' ? timeOfNumber(value) : typeof value === 'string' ? timeOfText(value) : undefined
    if (time === undefined) continue
    delete fields[key]
    return time
  }
  return undefined
}

function timeOfNumber(value: number): string | undefined {
  const date = new Date(value > year3000 ? value : value * 1000)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}

/** In UTC, with the digits after the second that the line has. */
function timeOfText(text: string): string | undefined {
  const [, fraction = ''] = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/.exec(text) ?? []
  const date = new Date(text)
  if (Number.isNaN(date.getTime()) || !/^\d{4}-\d\d-\d\dT/.test(text)) return undefined
  return text.endsWith('Z') ? text : `${date.toISOString().slice(0, 19)}${fraction}Z`
}

/** Takes the level out of the fields if it is a known one. */
function levelOf(fields: Record<string, unknown>): string | undefined {
  const level = typeof fields.level === 'string' ? levels[fields.level.toLowerCase()] : undefined
  if (level !== undefined) delete fields.level
  return level
}
