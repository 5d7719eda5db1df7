import * as v from 'valibot'
import { StoreError } from './errors.ts'

/** A resource is running, or is being torn down and waits for its finalizers. */
export type Phase = 'running' | 'tearingDown'

/** Metadata of every resource. */
export interface Metadata {
  readonly namespace: string
  readonly type: string
  readonly id: string
  /** 1 at creation, incremented by each change. */
  readonly version: number
  /** The controller that created it; empty when it was created through the API. */
  readonly owner: string
  readonly phase: Phase
  readonly created: Date
  readonly updated: Date
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** Finalizers that must be removed before it can be destroyed. */
  readonly finalizers: readonly string[]
}

/** A resource: a desired or an observed fact. Values are never changed in place. */
export interface Resource<S = unknown> {
  readonly metadata: Metadata
  readonly spec: S
}

/** A resource type: its names, its default namespace, its columns and the schema of its spec. */
export interface ResourceType<S = unknown> {
  readonly type: string
  readonly namespace: string
  readonly displayType: string
  readonly aliases: readonly string[]
  /** Whether aliases are also derived from type and display type. */
  readonly automaticAliases: boolean
  /** Whether the initials of the display type are an alias: not where they already mean another type. */
  readonly initials: boolean
  readonly sensitive: boolean
  /** Column header → JSON path in the spec. */
  readonly columns: Readonly<Record<string, string>>
  /** Annotations on every resource of the type, regardless of its writer: part of its wire format. */
  readonly annotations?: Readonly<Record<string, string>>
  readonly schema: v.GenericSchema<unknown, S>
  /** The spec as shown to readers that are not administrators. Default: the whole spec. */
  redacted?(spec: S): S
}

/** A type with any spec, for lists of types. */
// biome-ignore lint/suspicious/noExplicitAny: with `unknown` no type would fit, since `redacted` takes a spec
export type AnyResourceType = ResourceType<any>

/** The spec of a resource type. */
export type SpecOf<T> = T extends ResourceType<infer S> ? S : never

/** Declares a resource type; the keys of `spec` are the keys of its YAML. */
export function defineResource<const T extends v.GenericSchema<unknown, unknown>>(declaration: {
  type: string
  namespace: string
  displayType?: string
  aliases?: readonly string[]
  automaticAliases?: boolean
  initials?: boolean
  sensitive?: boolean
  columns?: Record<string, string>
  annotations?: Record<string, string>
  spec: T
  redacted?: (spec: v.InferOutput<T>) => v.InferOutput<T>
}): ResourceType<v.InferOutput<T>> {
  const { type, namespace, aliases = [], sensitive = false, columns = {}, annotations, spec, redacted } = declaration
  return {
    type,
    namespace,
    displayType: declaration.displayType ?? singular(type.slice(0, type.indexOf('.'))),
    aliases,
    automaticAliases: declaration.automaticAliases ?? true,
    initials: declaration.initials ?? true,
    sensitive,
    columns,
    ...(annotations && { annotations }),
    schema: spec as v.GenericSchema<unknown, v.InferOutput<T>>,
    ...(redacted && { redacted }),
  }
}

const firstIssue: v.Config<v.BaseIssue<unknown>> = { abortEarly: true }

/** Parses a spec with the schema of its type. Throws StoreError 'invalid' with the first wrong key. */
export function parseSpec<S>(type: ResourceType<S>, id: string, spec: unknown): S {
  // The same as `v.safeParse`, but without collecting its configuration for each write.
  const { issues, value } = type.schema['~run']({ value: spec }, firstIssue)
  if (!issues) return value as S
  const issue = issues[0]
  throw new StoreError('invalid', `parse spec of "${type.type}/${id}": ${v.getDotPath(issue) ?? 'spec'}: ${issue.message}`)
}

function singular(plural: string): string {
  if (/statuses$/i.test(plural)) return plural.slice(0, -2)
  if (/ies$/.test(plural)) return `${plural.slice(0, -3)}y`
  if (/(ss|x|ch|sh)es$/.test(plural)) return plural.slice(0, -2)
  return plural.endsWith('s') ? plural.slice(0, -1) : plural
}
