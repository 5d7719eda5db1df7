/** Lenient readers for untyped platform data. Errors are one line each. */
import { isObject } from '../../../document/is-object.ts'
import { PlatformConfigError } from './platform-config.ts'

/** A mapping of unknown structure. */
export type Loose = Readonly<Record<string, unknown>>

const longest = 1 << 20

/** Parses a JSON mapping. */
export function readJson(text: string, what: string): Loose {
  const value = parse(text, what)
  if (!isObject(value)) throw new PlatformConfigError(`${what}: expected a mapping`)
  return value
}

/** Parses a JSON list of mappings. */
export function readJsonList(text: string, what: string): Loose[] {
  const value = parse(text, what)
  if (!Array.isArray(value)) throw new PlatformConfigError(`${what}: expected a list`)
  return listOf(value)
}

function parse(text: string, what: string): unknown {
  if (text.length > longest) throw new PlatformConfigError(`${what}: ${text.length} characters exceed the limit`)
  try {
    return JSON.parse(text)
  } catch {
    throw new PlatformConfigError(`${what}: invalid JSON`)
  }
}

/** A mapping; empty if the value is not one. */
export const mappingOf = (value: unknown): Loose => (isObject(value) ? value : {})

/** The mappings in a list; empty if the value is not a list. */
export const listOf = (value: unknown): Loose[] => (Array.isArray(value) ? value.filter(isObject) : [])

/** A string or number as text; '' otherwise. */
export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value.trim() : typeof value === 'number' && Number.isFinite(value) ? String(value) : ''

/** The strings of a list. */
export const textsOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(textOf).filter((text) => text !== '') : [])

/** A valid MTU, otherwise 0. */
export const mtuOf = (value: unknown): number => {
  const mtu = Number(textOf(value))
  return Number.isInteger(mtu) && mtu >= 68 && mtu <= 65_536 ? mtu : 0
}

/** Decodes text that some platforms deliver as base64 and others as plain text. */
export function unwrapped(text: string): string {
  const bare = text.replaceAll(/\s/g, '')
  if (bare === '' || bare.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(bare)) return text
  return Buffer.from(bare, 'base64').toString()
}

/** Platform metadata without its empty fields. */
export const metadataOf = <T extends Loose>(given: T): T =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== '' && value !== undefined && value !== false)) as T
