/** Keys that this release accepts but does not implement: using them is refused, with an alternative declared beside them. */
import * as v from 'valibot'
import type { Path } from './path.ts'
import { notedAt, unwrap } from './shape.ts'

interface NotYet {
  readonly instead: string
  /** Values that request the behaviour there is anyway. Default: false and empty values. */
  readonly accepts?: readonly unknown[]
}

/**
 * Declares a key that this release does not implement yet, with the alternative. Values that request nothing, or what is
 * done anyway, are accepted, since generators write such values.
 */
export const notYet = <S extends v.GenericSchema>(schema: S, instead: string, { accepts }: { accepts?: readonly unknown[] } = {}) =>
  v.pipe(schema, v.metadata({ notYet: { instead, ...(accepts && { accepts }) } satisfies NotYet }))

/** The alternative to a key that is not implemented; undefined for other keys. */
export const insteadOf = (schema: unknown): string | undefined => notYetOf(schema)?.instead

/** Every part of a value that requests something that is not implemented. */
export function* unsupported(schema: unknown, value: unknown, path: Path = []): Generator<{ path: Path; instead: string }> {
  if (!schema || value === undefined || value === null) return
  const declared = notYetOf(schema)
  if (declared && !isAccepted(declared, value)) yield { path, instead: declared.instead }
  if (declared) return
  const { entries, item, value: every } = unwrap(schema)
  if (Array.isArray(value)) for (const [index, each] of value.entries()) yield* unsupported(item, each, [...path, index])
  else if (typeof value === 'object')
    for (const [key, each] of Object.entries(value)) yield* unsupported(entries ? entries[key] : every, each, [...path, key])
}

function notYetOf(schema: unknown): NotYet | undefined {
  return notedAt(schema, 'notYet') as NotYet | undefined
}

const isAccepted = ({ accepts }: NotYet, value: unknown): boolean => (accepts ? accepts.includes(value) : requestsNothing(value))

function requestsNothing(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return !value
  return Object.values(value).every(requestsNothing)
}
