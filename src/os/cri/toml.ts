/** TOML (https://toml.io/en/v1.0.0), read and written by the runtime, and laying one table over another. */

/** A value that TOML has. */
export type TomlValue = string | number | boolean | readonly TomlValue[] | TomlTable

/** Keys and values; undefined is left out. */
export interface TomlTable {
  readonly [key: string]: TomlValue | undefined
}

/** A table as TOML text. */
export const formatToml = (table: TomlTable): string => Bun.TOML.stringify(table)

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
