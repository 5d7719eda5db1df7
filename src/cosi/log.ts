/** Severity of a log line, least first. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** One structured log line. */
export interface LogEntry {
  readonly time: Date
  readonly level: LogLevel
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
  /** It ends the problems that were logged with the same `controller`. */
  readonly resolves?: true
}

/** The logger of a component: constant messages, details as fields. */
export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void
  info(message: string, fields?: Record<string, unknown>): void
  warn(message: string, fields?: Record<string, unknown>): void
  error(message: string, fields?: Record<string, unknown>): void
  /** At level info: the problems logged with the same `controller` are over. */
  resolved(message: string, fields?: Record<string, unknown>): void
  /** The same logger with additional fields on every line. */
  with(fields: Record<string, unknown>): Logger
}

/** A logger that passes every entry to `sink`. */
export function createLogger(
  sink: (entry: LogEntry) => void,
  fields: Record<string, unknown> = {},
  now: () => Date = () => new Date(),
): Logger {
  const at =
    (level: LogLevel, kind: Pick<LogEntry, 'resolves'> = {}) =>
    (message: string, more: Record<string, unknown> = {}) =>
      sink({ time: now(), level, message, fields: { ...fields, ...more }, ...kind })
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    resolved: at('info', { resolves: true }),
    with: (more) => createLogger(sink, { ...fields, ...more }, now),
  }
}

/** A logger that discards everything. */
export const silent: Logger = createLogger(() => {})

/** `message key=value …` with values quoted where they contain spaces; errors by their message. */
export function formatEntry({ level, message, fields }: LogEntry): string {
  const details = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${formatValue(value)}`)
  return [level === 'info' ? message : `${level}: ${message}`, ...details].join(' ')
}

function formatValue(value: unknown): string {
  const text = value instanceof Error ? value.message : typeof value === 'string' ? value : textOf(value)
  return typeof value === 'string' || value instanceof Error ? (/[\s"=]/.test(text) || text === '' ? JSON.stringify(text) : text) : text
}

/** A text for any value of a field; never throws. */
function textOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    return Object.prototype.toString.call(value)
  }
}
