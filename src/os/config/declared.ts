import type { Resource } from '../../cosi/resource.ts'
import { V1Alpha1 } from './documents/v1alpha1.ts'
import { configOf } from './parse.ts'

/** A machine configuration as its readers see it: the sections of the first document and the named documents after it. */
export interface Declared {
  readonly machine: Readonly<Record<string, any>>
  readonly cluster: Readonly<Record<string, any>>
  readonly documents: readonly Readonly<Record<string, any>>[]
}

/** Reads the configuration that is in force. */
export function declared(resource: Resource<string> | undefined): Declared | undefined {
  const config = configOf(resource)
  return (
    config && {
      machine: config.v1alpha1?.machine ?? {},
      cluster: config.v1alpha1?.cluster ?? {},
      documents: config.documents.filter(({ kind }) => kind !== V1Alpha1).map(({ value }) => value),
    }
  )
}

/** The first document of a kind, of this name if one is given. */
export function find({ documents }: Declared, kind: string, name?: string): Readonly<Record<string, any>> | undefined {
  return documents.find((document) => document.kind === kind && (name === undefined || document.name === name))
}
