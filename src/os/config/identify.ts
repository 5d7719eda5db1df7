/** The kind of a configuration document. */
import * as v from 'valibot'
import { isMap, isScalar, type YAMLMap } from 'yaml'
import { ConfigError } from '../../document/config-error.ts'
import { type DocumentKind, documentLabel } from '../../document/kind.ts'
import { nearest } from '../../document/nearest.ts'
import { keyOf, pairOf, textOf } from '../../document/patch/node.ts'
import { positionOf, type Stream, type YamlDocument } from '../../document/stream.ts'
import { V1Alpha1 } from './documents/v1alpha1.ts'
import { documentKinds } from './kinds.ts'

/** A document with its kind. */
export interface Identified {
  kind: DocumentKind
  /** Its name among the documents of its kind. */
  name?: string
  label: string
}

const legacyKeys = ['version', 'machine', 'cluster', 'debug', 'persist']

/** Determines the kind of a document. Throws ConfigError when it has none, or an unknown one. */
export function identify(document: YamlDocument, lines?: Stream['lines']): Identified {
  const { contents } = document
  const refuse = (message: string, key?: string): never => {
    const at =
      key && isMap(contents) ? (pairOf(contents as YAMLMap, key)?.value as { range?: [number, number, number] } | undefined) : contents
    throw new ConfigError([{ ...(lines && at?.range && positionOf(lines, at.range[0])), message }])
  }
  if (!isMap(contents)) return refuse(`a configuration document is a map, not ${isScalar(contents) ? 'a text' : 'a list'}`)
  const map = contents as YAMLMap
  const kind = textOf(map, 'kind')
  const apiVersion = textOf(map, 'apiVersion')
  if (!kind) {
    if (map.items.some((pair) => legacyKeys.includes(keyOf(pair)))) return { kind: V1Alpha1, label: V1Alpha1.kind }
    const [first] = map.items
    const key = first ? keyOf(first) : ''
    const guess = first ? nearest(key, [...legacyKeys, 'kind', 'apiVersion']) : undefined
    const hint = guess ? `; did you mean ${JSON.stringify(guess)} instead of ${JSON.stringify(key)}?` : ''
    return refuse(`a document needs "machine" and "cluster", or "apiVersion" and "kind"${hint}`)
  }
  const found = documentKinds.get(kind)
  if (!found?.apiVersion) {
    const guess = nearest(
      kind,
      [...documentKinds.values()].filter((each) => each.apiVersion).map((each) => each.kind),
    )
    return refuse(`unknown kind ${JSON.stringify(kind)}${guess ? `, did you mean ${JSON.stringify(guess)}?` : ''}`, 'kind')
  }
  if (!apiVersion) return refuse(`a document of kind ${JSON.stringify(kind)} needs "apiVersion: ${found.apiVersion}"`)
  if (apiVersion !== found.apiVersion)
    refuse(`${kind} has no version ${JSON.stringify(apiVersion)}: use ${JSON.stringify(found.apiVersion)}`, 'apiVersion')
  const name = found.nameKey ? textOf(map, found.nameKey) : undefined
  return { kind: found, ...(name !== undefined && { name }), label: documentLabel(kind, name) }
}

const complete = new Map<DocumentKind, v.GenericSchema>()

/** The schema of a whole document, with the keys that name its kind. */
export function schemaOf(kind: DocumentKind): v.GenericSchema {
  if (!kind.apiVersion) return kind.schema
  let schema = complete.get(kind)
  if (!schema) {
    const { entries } = kind.schema as unknown as { entries: v.ObjectEntries }
    schema = v.object({ apiVersion: v.literal(kind.apiVersion), kind: v.literal(kind.kind), ...entries })
    complete.set(kind, schema)
  }
  return schema
}
