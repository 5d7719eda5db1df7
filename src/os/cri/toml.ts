/** Writing TOML (https://toml.io/en/v1.0.0), and laying one table over another. Reading it is the runtime's own. */

/** A value that TOML has. */
export type TomlValue = string | number | boolean | readonly TomlValue[] | TomlTable

/** Keys and values; undefined is left out. */
export interface TomlTable {
  readonly [key: string]: TomlValue | undefined
}

/** A table as TOML text: plain keys first, then tables by their full names. */
export function formatToml(table: TomlTable, path: readonly string[] = []): string {
  const entries = Object.entries(table).filter((entry): entry is [string, TomlValue] => entry[1] !== undefined)
  const plain = entries.filter(([, value]) => !isTable(value)).map(([key, value]) => `${formatKey(key)} = ${formatValue(value)}\n`)
  const head = path.length > 0 && (plain.length > 0 || entries.length === 0) ? `\n[${path.map(formatKey).join('.')}]\n` : ''
  const tables = entries.filter(([, value]) => isTable(value)).map(([key, value]) => formatToml(value as TomlTable, [...path, key]))
  return [head, ...plain, ...tables].join('')
}

/** Reads TOML. Throws with the place and reason when it is none. */
export function parseToml(text: string): TomlTable {
  return Bun.TOML.parse(text) as TomlTable
}

/** The second laid over the first: tables are merged, everything else is replaced. */
export function overlayToml(under: TomlTable, over: TomlTable): TomlTable {
  const result: Record<string, TomlValue | undefined> = { ...under }
  for (const [key, value] of Object.entries(over)) {
    const old = under[key]
    result[key] = isTable(old) && isTable(value) ? overlayToml(old, value) : value
  }
  return result
}

function isTable(value: TomlValue | undefined): value is TomlTable {
  return typeof value === 'object' && !Array.isArray(value)
}

function formatKey(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : formatValue(key)
}

function formatValue(value: TomlValue): string {
  if (typeof value === 'string') return JSON.stringify(value).replace(/\x7f/g, '\\u007F')
  if (Array.isArray(value)) return `[${value.map(formatValue).join(', ')}]`
  if (isTable(value)) {
    const entries = Object.entries(value).filter((entry): entry is [string, TomlValue] => entry[1] !== undefined)
    return `{ ${entries.map(([key, inner]) => `${formatKey(key)} = ${formatValue(inner)}`).join(', ')} }`
  }
  return String(value)
}
