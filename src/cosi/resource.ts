import * as v from 'valibot'
import { StoreError } from './errors.ts'

/** A resource is being kept, or is on its way out and waits for its finalizers. */
export type Phase = 'running' | 'tearingDown'

/** What is known of every resource, whatever its kind. */
export interface Metadata {
  readonly namespace: string
  readonly type: string
  readonly id: string
  /** 1 at creation, one more at each change. */
  readonly version: number
  /** The controller that made it; empty for one made from outside. */
  readonly owner: string
  readonly phase: Phase
  readonly created: Date
  readonly updated: Date
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** Names of those who must let go before it may be destroyed. */
  readonly finalizers: readonly string[]
}

/** One thing that is declared or true. Values are never changed in place. */
export interface Resource<S = unknown> {
  readonly metadata: Metadata
  readonly spec: S
}

/** A kind of resource: its name, home, how it is shown and what its spec holds. */
export interface ResourceType<S = unknown> {
  readonly type: string
  readonly namespace: string
  readonly displayType: string
  readonly aliases: readonly string[]
  /** Whether names are also made of its type and display type. */
  readonly automaticAliases: boolean
  /** Whether the initials of its display type are among those names: not where they mean another kind already. */
  readonly initials: boolean
  readonly sensitive: boolean
  /** Column header → JSON path in the spec. */
  readonly columns: Readonly<Record<string, string>>
  /** Annotations that every resource of the type has, whoever writes it: part of its wire format. */
  readonly annotations?: Readonly<Record<string, string>>
  readonly schema: v.GenericSchema<unknown, S>
  /** The spec as it is shown to readers that are not administrators; without it they see all of it. */
  redacted?(spec: S): S
}

/** A type whose specs are of no matter: lists of types hold them. With `unknown` no type would fit, since `redacted` takes a spec. */
export type AnyResourceType = ResourceType<any>

/** The spec a resource type holds. */
export type SpecOf<T> = T extends ResourceType<infer S> ? S : never

/** Declares a kind of resource; keys of `spec` are the keys its YAML has. */
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

/** Parses a spec as its type declares it. Throws StoreError 'invalid' that names the first wrong key. */
export function parseSpec<S>(type: ResourceType<S>, id: string, spec: unknown): S {
  // What `v.safeParse` does, without gathering its configuration anew for each of many writes.
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
