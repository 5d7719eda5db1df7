import type { Metadata } from './resource.ts'

/** One condition on a label; operators as the resource API has them. */
export interface LabelTerm {
  readonly key: string
  readonly op: 'exists' | 'equal' | 'in' | 'lt' | 'lte' | 'lt-numeric' | 'lte-numeric'
  readonly values?: readonly string[]
  readonly invert?: boolean
}

/** All of the terms must hold. */
export type Selector = readonly LabelTerm[]

/** Whether the labels of a resource satisfy every term. */
export function matches({ labels }: Pick<Metadata, 'labels'>, selector: Selector): boolean {
  return selector.every((term) => holds(labels[term.key], term) !== (term.invert ?? false))
}

function holds(value: string | undefined, { op, values = [] }: LabelTerm): boolean {
  if (value === undefined) return false
  const first = values[0] ?? ''
  switch (op) {
    case 'exists':
      return true
    case 'equal':
      return value === first
    case 'in':
      return values.includes(value)
    case 'lt':
      return value < first
    case 'lte':
      return value <= first
    case 'lt-numeric':
      return Number(value) < Number(first)
    case 'lte-numeric':
      return Number(value) <= Number(first)
  }
}
