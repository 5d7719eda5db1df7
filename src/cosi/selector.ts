import type { Metadata } from './resource.ts'

/** A condition on one label, with the operators of the resource API. */
export interface LabelTerm {
  readonly key: string
  readonly op: 'exists' | 'equal' | 'in' | 'lt' | 'lte' | 'lt-numeric' | 'lte-numeric'
  readonly values?: readonly string[]
  readonly invert?: boolean
}

/** All terms must match. */
export type Selector = readonly LabelTerm[]

/** Whether the labels of a resource satisfy every term. */
export function matches({ labels }: Pick<Metadata, 'labels'>, selector: Selector): boolean {
  return selector.every((term) => {
    const held = holds(labels[term.key], term)
    return held !== undefined && held !== (term.invert ?? false)
  })
}

/** Undefined when there is nothing to compare: the term does not match then, inverted or not. */
function holds(value: string | undefined, { op, values = [] }: LabelTerm): boolean | undefined {
  const [first] = values
  if (op === 'exists') return value !== undefined
  if (op === 'equal') return value !== undefined && value === first
  if (op === 'in') return value !== undefined && values.includes(value)
  if (value === undefined) return undefined
  if (first === undefined) return false
  if (op === 'lt') return value < first
  if (op === 'lte') return value <= first
  const [left, right] = [quantity(value), quantity(first)]
  if (left === undefined || right === undefined) return undefined
  return op === 'lt-numeric' ? left < right : left <= right
}

const units: Readonly<Record<string, bigint>> = {
  '': 1n,
  k: 10n ** 3n,
  m: 10n ** 6n,
  g: 10n ** 9n,
  t: 10n ** 12n,
  p: 10n ** 15n,
  ki: 1n << 10n,
  mi: 1n << 20n,
  gi: 1n << 30n,
  ti: 1n << 40n,
  pi: 1n << 50n,
}

/** A whole number with a unit, as in labels: `16`, `8 GiB`, `2kg`. Only the multiplier of the unit counts. */
function quantity(text: string): bigint | undefined {
  const [, digits, unit = ''] = /^\s*(-?\d{1,19})\s*(?:([a-z]\S{0,15})\s*)?$/i.exec(text) ?? []
  if (digits === undefined) return undefined
  const factor = units[unit.slice(0, 2).toLowerCase()] ?? units[unit.slice(0, 1).toLowerCase()]
  return factor === undefined ? undefined : BigInt(digits) * factor
}
