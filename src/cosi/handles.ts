/** What a round reads its inputs with, and writes its outputs. */

import type { Input, Output, Reader, Writer } from './controller.ts'
import type { Missing } from './controller-state.ts'
import { parseSpec, type Resource } from './resource.ts'
import type { Store } from './store.ts'

/** What a round puts under one id. */
export interface Put {
  spec: unknown
  labels: Record<string, string>
  annotations: Record<string, string>
}

/** Reads an input or an output. */
export function readerOf(
  store: Store,
  { kind, type, namespace }: { kind?: string; type: Input['type']; namespace: string },
): Reader<unknown> {
  const shown = kind === 'destroy-ready' ? destroyable : running
  return {
    get: (id) => {
      const resource = store.get(type, id, { namespace })
      return resource && shown(resource) ? resource : undefined
    },
    list: (query) => store.list(type, { ...query, namespace }).filter(shown),
  }
}

/** Collects what a round writes to an output. */
export function writerOf(store: Store, output: Output, puts: Map<string, Put>, retained: Set<string>): Writer<unknown> {
  return {
    ...readerOf(store, output),
    put: (id, spec, { labels = {}, annotations = {} } = {}) =>
      puts.set(id, { spec: parseSpec(output.type, id, spec), labels, annotations }),
    keep: (id) => retained.add(id),
  }
}

/** The same reader; requests for resources that do not exist are recorded. */
export function recording(reader: Reader<unknown>, { type, namespace }: Input, missing: Map<string, Missing>): Reader<unknown> {
  const record = (id: string) => {
    const key = `${namespace}/${type.type}/${id}`
    if (!missing.has(key)) missing.set(key, { type, namespace, id })
  }
  return {
    get: (id) => {
      const found = reader.get(id)
      if (!found) record(id)
      return found
    },
    list: (query) => {
      const found = reader.list(query)
      if (found.length === 0) record('')
      return found
    },
  }
}

/** Not being torn down. */
const running = (resource: Resource): boolean => resource.metadata.phase === 'running'

/** Being torn down, without a finalizer left. */
export const destroyable = ({ metadata }: Resource): boolean => metadata.phase === 'tearingDown' && metadata.finalizers.length === 0
