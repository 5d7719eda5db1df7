/** What comes from a platform has whatever form it has: read with care, told in one line where it is not what it should be. */
import { PlatformConfigError } from './platform-config.ts'

/** A mapping of which nothing is known yet. */
export type Loose = Readonly<Record<string, unknown>>

const longest = 1 << 20

/** Reads a JSON mapping. */
export function readJson(text: string, what: string): Loose {
  const value = parse(text, what)
  if (!isMapping(value)) throw new PlatformConfigError(`${what}: it is not a mapping`)
  return value
}

/** Reads a JSON list of mappings. */
export function readJsonList(text: string, what: string): Loose[] {
  const value = parse(text, what)
  if (!Array.isArray(value)) throw new PlatformConfigError(`${what}: it is not a list`)
  return listOf(value)
}

function parse(text: string, what: string): unknown {
  if (text.length > longest) throw new PlatformConfigError(`${what}: ${text.length} characters are too many`)
  try {
    return JSON.parse(text)
  } catch {
    throw new PlatformConfigError(`${what}: it is not JSON`)
  }
}

const isMapping = (value: unknown): value is Loose => typeof value === 'object' && value !== null && !Array.isArray(value)

/** A mapping, empty when it is none. */
export const mappingOf = (value: unknown): Loose => (isMapping(value) ? value : {})

/** The mappings of a list, none when it is none. */
export const listOf = (value: unknown): Loose[] => (Array.isArray(value) ? value.filter(isMapping) : [])

/** A text, also of a number; '' when it is neither. */
export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value.trim() : typeof value === 'number' && Number.isFinite(value) ? String(value) : ''

/** The texts of a list. */
export const textsOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(textOf).filter((text) => text !== '') : [])

/** A number that a link can have as its MTU. */
export const mtuOf = (value: unknown): number => {
  const mtu = Number(textOf(value))
  return Number.isInteger(mtu) && mtu >= 68 && mtu <= 65_536 ? mtu : 0
}

/** Text that some platforms write as base64 and some as it is. */
export function unwrapped(text: string): string {
  const bare = text.replaceAll(/\s/g, '')
  if (bare === '' || bare.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(bare)) return text
  return Buffer.from(bare, 'base64').toString()
}

/** What the metadata says of the machine, what is empty left out. */
export const metadataOf = <T extends Loose>(given: T): T =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== '' && value !== undefined && value !== false)) as T
