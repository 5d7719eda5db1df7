/** A kind of configuration document: its name, its schema and its rules. */
import type * as v from 'valibot'
import type { Path } from './path.ts'

/** Reports a problem at a path of the document being checked. */
export interface Reporter {
  error(path: Path, message: string): void
  warning(path: Path, message: string): void
}

/** Where a configuration is used: on bare metal, in a cloud, or in a container. */
export type Mode = 'metal' | 'cloud' | 'container'

/** A kind of document, as built by `defineDocument`. */
// biome-ignore lint/suspicious/noExplicitAny: lists hold kinds with any document, and `unknown` would fit none, since rules take one
export interface DocumentKind<T = any> {
  readonly kind: string
  readonly apiVersion: string
  /** The key that identifies documents of this kind; without it there is at most one. */
  readonly nameKey?: string
  readonly description: string
  /** The alternative to a kind that this release does not implement: such documents are refused. */
  readonly notYet?: string
  readonly schema: v.GenericSchema<unknown, T>
  /** Checks beyond the schema. */
  readonly rules?: (document: T, report: Reporter, mode: Mode) => void
}

/** The type of a kind's documents. */
export type DocumentOf<K> = K extends DocumentKind<infer T> ? T : never

/** Declares a kind of document; `apiVersion` and `kind` are added to the schema. */
export function defineDocument<const S extends v.GenericSchema>(declaration: {
  kind: string
  apiVersion?: string
  description: string
  notYet?: string
  nameKey?: string
  schema: S
  rules?(document: v.InferOutput<S>, report: Reporter, mode: Mode): void
}): DocumentKind<v.InferOutput<S>> {
  return { apiVersion: 'v1alpha1', ...declaration }
}

/** The label of a document in messages: its kind, and its name if it has one. */
export const documentLabel = (kind: string, name?: string): string => (name ? `${kind} ${JSON.stringify(name)}` : kind)
