/** Keys that a release reads and does not act on: asking for them is refused, with what to do instead, beside their declaration. */
import * as v from 'valibot'
import { notedAt, unwrap } from './decode.ts'
import type { Path } from './path.ts'

interface NotYet {
  readonly instead: string
  /** Values that ask for what is done anyway; without them, false and what is empty. */
  readonly accepts?: readonly unknown[]
}

/**
 * Declares a key that this release does not act on yet, with what to do instead. Configurations that ask for nothing there,
 * or for what is done anyway, are accepted, since generators write such values.
 */
export const notYet = <S extends v.GenericSchema>(schema: S, instead: string, { accepts }: { accepts?: readonly unknown[] } = {}) =>
  v.pipe(schema, v.metadata({ notYet: { instead, ...(accepts && { accepts }) } satisfies NotYet }))

/** What to do instead of a key that is not acted on; undefined for one that is. */
export const insteadOf = (schema: unknown): string | undefined => notYetOf(schema)?.instead

/** Everything in a value that asks for what is not done. */
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

const isAccepted = ({ accepts }: NotYet, value: unknown): boolean => (accepts ? accepts.includes(value) : asksForNothing(value))

function asksForNothing(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return !value
  return Object.values(value).every(asksForNothing)
}
