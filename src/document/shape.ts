/** The schema as the parts see it that walk over it: valibot has a type for each kind of schema. */
import type * as v from 'valibot'

/** Any schema. */
export type Schema = v.GenericSchema

/** A schema as the walk sees it: valibot has a separate type for each kind of schema. */
export interface Shape {
  readonly type: string
  readonly entries?: Readonly<Record<string, Schema>>
  readonly item?: Schema
  readonly value?: Schema
  readonly options?: readonly unknown[]
  readonly literal?: unknown
  readonly wrapped?: Shape
  readonly pipe?: readonly Step[]
}

/** One action of a schema's pipe. */
export interface Step {
  readonly type: string
  readonly description?: string
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly pipe?: readonly Step[]
}

/** The schema inside `optional` and similar wrappers. */
export function unwrap(schema: unknown): Shape {
  let inner = schema as Shape
  while (inner.wrapped) inner = inner.wrapped
  return inner
}

/** Every action in a schema's pipe, also of nested pipes. */
export function pipeOf(schema: unknown): Step[] {
  return (unwrap(schema ?? {}).pipe ?? []).flatMap((step) => (step.pipe ? pipeOf(step) : [step]))
}

/** Metadata that a schema declares under a name (`v.metadata`). */
export const notedAt = (schema: unknown, name: string): unknown => pipeOf(schema).find(({ metadata }) => metadata?.[name])?.metadata?.[name]
