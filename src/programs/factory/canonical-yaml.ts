/**
 * The canonical YAML of schematics: equal schematics give equal bytes, and the bytes are those of the factory of the field, since
 * the id of a schematic is their hash. Indented by four, lists within their key, no line is folded.
 */
import { canonicalNumber, canonicalString } from './canonical-scalar.ts'

/** A value as it is written; a map has its keys in the order of writing. */
export type Canonical = string | number | boolean | null | readonly Canonical[] | ReadonlyMap<string, Canonical>

/** A document. */
export function canonicalYaml(root: ReadonlyMap<string, Canonical>): string {
  return `${mapLines(root, 0)}\n`
}

/** What lies within a key begins at the next multiple of four. */
const within = (indent: number) => 4 * Math.floor(indent / 4 + 1)

function mapLines(map: ReadonlyMap<string, Canonical>, indent: number): string {
  return [...map]
    .map(([key, value]) => `${canonicalString(key, indent, 'key')}:${valueText(value, indent)}`)
    .join(`\n${' '.repeat(indent)}`)
}

function listLines(items: readonly Canonical[], indent: number): string {
  return items.map((item) => `-${itemText(item, indent)}`).join(`\n${' '.repeat(indent)}`)
}

/** What follows the colon of a key at this indentation. */
function valueText(value: Canonical, indent: number): string {
  if (!isCollection(value) || sizeOf(value) === 0) return ` ${scalarText(value, within(indent))}`
  const inner = within(indent)
  return `\n${' '.repeat(inner)}${value instanceof Map ? mapLines(value, inner) : listLines(value as readonly Canonical[], inner)}`
}

/** What follows the dash of an item at this indentation: a map or list begins on its line. */
function itemText(value: Canonical, indent: number): string {
  if (!isCollection(value) || sizeOf(value) === 0) return ` ${scalarText(value, indent + 2)}`
  if (value instanceof Map) return ` ${mapLines(value, indent + 2)}`
  return ` ${listLines(value as readonly Canonical[], indent + 2)}`
}

function scalarText(value: Canonical, indent: number): string {
  if (value === null) return 'null'
  if (typeof value === 'string') return canonicalString(value, indent, 'value')
  if (typeof value === 'number') return canonicalNumber(value)
  return typeof value === 'boolean' ? String(value) : value instanceof Map ? '{}' : '[]'
}

const isCollection = (value: Canonical): value is readonly Canonical[] | ReadonlyMap<string, Canonical> =>
  typeof value === 'object' && value !== null

const sizeOf = (value: readonly Canonical[] | ReadonlyMap<string, Canonical>) => (value instanceof Map ? value.size : [...value].length)

/** The order of keys in options: letters behind other characters, numbers by their value (a2 before a10). */
export function naturalOrder(a: string, b: string): number {
  const [left, right] = [[...a], [...b]]
  let digits = false
  for (let at = 0; at < left.length && at < right.length; at++) {
    const [x = '', y = ''] = [left[at], right[at]]
    if (x === y) {
      digits = isDigit(x)
      continue
    }
    const [letterX, letterY] = [isLetter(x), isLetter(y)]
    if (letterX && letterY) return byCode(x, y)
    if (letterX || letterY) return (digits ? letterX : letterY) ? -1 : 1
    return byNumber(left, right, at) || byCode(x, y)
  }
  return left.length - right.length
}

const isDigit = (character: string) => /^\p{Nd}$/u.test(character)
const isLetter = (character: string) => /^\p{L}$/u.test(character)
const byCode = (x: string, y: string) => (x.codePointAt(0) ?? 0) - (y.codePointAt(0) ?? 0)

/** Compares the numbers that begin here; zeros count as digits of a number that began before. */
function byNumber(left: readonly string[], right: readonly string[], at: number): number {
  const numberOf = (characters: readonly string[]) => {
    const rest = characters.slice(at)
    const end = rest.findIndex((character) => !isDigit(character))
    return rest.slice(0, end < 0 ? rest.length : end).join('')
  }
  const [a, b] = [numberOf(left), numberOf(right)]
  const before = left.slice(0, at)
  const zeros = before.slice(before.findLastIndex((character) => !isDigit(character)) + 1)
  const lead = (left[at] === '0' || right[at] === '0') && zeros.some((digit) => digit !== '0') ? '1' : ''
  const difference = Number(`${lead}${a}` || '0') - Number(`${lead}${b}` || '0')
  return difference || a.length - b.length
}
