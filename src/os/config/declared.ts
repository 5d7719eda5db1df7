import type { Resource } from '../../cosi/resource.ts'
import type { DocumentKind, DocumentOf } from '../../document/kind.ts'
import type { ConfigContainer } from './container.ts'
import type { V1Alpha1Document } from './documents/v1alpha1.ts'
import { configOf } from './parse.ts'

/** `machine` of the v1alpha1 document, keyed as in its YAML, everything optional. */
export type MachineSection = NonNullable<V1Alpha1Document['machine']>

/** `cluster` of the v1alpha1 document. */
export type ClusterSection = NonNullable<V1Alpha1Document['cluster']>

/**
 * A machine configuration for its readers: the sections of the v1alpha1 document, and the container with all documents. These are
 * the validated values themselves; the text is not parsed a second time.
 */
export interface Declared {
  readonly machine: MachineSection
  readonly cluster: ClusterSection
  readonly container: ConfigContainer
}

/** The decoded configuration of a MachineConfig resource. */
export function declared(resource: Resource<string>): Declared
export function declared(resource: Resource<string> | undefined): Declared | undefined
export function declared(resource: Resource<string> | undefined): Declared | undefined {
  const container = configOf(resource)
  if (!container) return undefined
  const { machine = {}, cluster = {} } = container.v1alpha1 ?? {}
  return { machine, cluster, container }
}

/** The first document of a kind, of this name if one is given. */
export function find<K extends DocumentKind>(config: Declared | undefined, kind: K, name?: string): DocumentOf<K> | undefined {
  return config?.container.find(kind, name)
}

/** All documents of a kind, in order. */
export function findAll<K extends DocumentKind>(config: Declared | undefined, kind: K): DocumentOf<K>[] {
  return config?.container.findAll(kind) ?? []
}
