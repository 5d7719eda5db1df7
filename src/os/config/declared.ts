import { parseAllDocuments } from 'yaml'
import type { Resource } from '../../cosi/resource.ts'

/** A machine configuration as its readers see it: the sections of the first document and the named documents after it. */
export interface Declared {
  readonly machine: Readonly<Record<string, any>>
  readonly cluster: Readonly<Record<string, any>>
  readonly documents: readonly Readonly<Record<string, any>>[]
}

/** Reads the configuration that is in force. It was validated when it was accepted, so its shape is known. */
export function declared(resource: Resource<string> | undefined): Declared | undefined {
  if (!resource) return undefined
  let found = parsed.get(resource)
  if (!found) {
    const values = [...parseAllDocuments(resource.spec, { logLevel: 'silent' })].map(
      (document) => document.toJS({ maxAliasCount: 100 }) ?? {},
    )
    const legacy = values.find((value) => !('kind' in value)) ?? {}
    found = { machine: legacy.machine ?? {}, cluster: legacy.cluster ?? {}, documents: values.filter((value) => 'kind' in value) }
    parsed.set(resource, found)
  }
  return found
}

/** The first document of a kind, of this name if one is given. */
export function find({ documents }: Declared, kind: string, name?: string): Readonly<Record<string, any>> | undefined {
  return documents.find((document) => document.kind === kind && (name === undefined || document.name === name))
}

const parsed = new WeakMap<Resource<string>, Declared>()
