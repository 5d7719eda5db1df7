/** A kind of configuration document: its name, what it holds, and the rules it obeys. */
import type * as v from 'valibot'
import type { Path } from './path.ts'

/** Reports something at a path of the document being checked. */
export interface Reporter {
  error(path: Path, message: string): void
  warning(path: Path, message: string): void
}

/** Where a configuration is to be used: on a disk of its own, on a cloud's image, or in a container. */
export type Mode = 'metal' | 'cloud' | 'container'

/**
 * A kind of document as `defineDocument` makes it. A list of kinds is of no document's type: `unknown` would fit none, since
 * rules take a document.
 */
export interface DocumentKind<T = any> {
  readonly kind: string
  readonly apiVersion: string
  /** The key whose value tells documents of this kind apart; without one there is at most one. */
  readonly nameKey?: string
  readonly description: string
  /** What to do instead of a kind that this release does not act on yet: such documents are refused. */
  readonly notYet?: string
  readonly schema: v.GenericSchema<unknown, T>
  /** Rules beyond the schema. */
  readonly rules?: (document: T, report: Reporter, mode: Mode) => void
}

/** The document of a kind. */
export type DocumentOf<K> = K extends DocumentKind<infer T> ? T : never

/** Declares a kind of document; `apiVersion` and `kind` are known without being listed. */
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

/** How users call a document: its kind, with its name where it has one. */
export const documentLabel = (kind: string, name?: string): string => (name ? `${kind} ${JSON.stringify(name)}` : kind)
