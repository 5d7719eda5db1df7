/** TOML (https://toml.io/en/v1.0.0), parsed and written by the runtime, and merging of tables. */

/** A TOML value. */
export type TomlValue = string | number | boolean | readonly TomlValue[] | TomlTable

/** Keys and values; undefined is left out. */
export interface TomlTable {
  readonly [key: string]: TomlValue | undefined
}

/** A table as TOML text. */
export const formatToml = (table: TomlTable): string => Bun.TOML.stringify(table)

/** Parses TOML. Throws with the position and reason when it is invalid. */
export function parseToml(text: string): TomlTable {
  return Bun.TOML.parse(text) as TomlTable
}

/** Merges the second table into the first: tables are merged, everything else is replaced. */
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
