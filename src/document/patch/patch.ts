/** Patches as users write them: YAML or JSON, a strategic merge or a list of JSON patch operations. */
import { isMap, isSeq, Pair, Scalar, type YAMLMap } from 'yaml'
import { ConfigError } from '../config-error.ts'
import { parseStream, type YamlDocument } from '../stream.ts'
import { difference } from './difference.ts'
import { type Operation, operate, type Place, pointerSteps, readOperations } from './json.ts'
import { isEmpty, keyOf, openAliases, pairOf } from './node.ts'
import { directive, mergeDocument, ownDocument } from './strategic.ts'

/** A parsed patch. */
export type Patch = { operations: Operation[] } | { documents: YamlDocument[] }

/** Parses a patch; an empty one changes nothing. Throws ConfigError. */
export function parsePatch(text: string | Uint8Array): Patch {
  const documents = parseStream(text).documents.filter(
    ({ contents }) => !isEmpty(contents) && !(isMap(contents) && contents.items.length === 0),
  )
  const [first] = documents
  if (documents.length === 1 && first && isSeq(first.contents)) return { operations: readOperations(first) ?? [] }
  if (documents.some(({ contents }) => !isMap(contents))) {
    throw new ConfigError([{ message: 'a patch is a map in the shape of the configuration, or a list of JSON patch operations' }])
  }
  return { documents }
}

/** How documents are identified. */
export interface Identity {
  /** The identity of a document within a configuration; throws ConfigError for an unknown document. */
  identify(document: YamlDocument): { kind: string; name?: string; schema: unknown }
}

/** Applies a patch to a list of documents, which is modified in place. */
export function applyPatch(documents: YamlDocument[], patch: Patch, { identify }: Identity): void {
  for (const document of documents) openAliases(document)
  if ('operations' in patch) {
    for (const operation of patch.operations) operate(operation, (pointer) => locate(documents, pointer, identify))
    return
  }
  for (const change of patch.documents) {
    const { kind, name, schema } = identify(change)
    const index = documents.findIndex((document) => {
      const other = identify(document)
      return other.kind === kind && other.name === name
    })
    const known = documents[index]
    if (directive(change.contents) === 'delete') {
      if (index >= 0) documents.splice(index, 1)
    } else if (known) mergeDocument(known, change, schema)
    else if (kind === 'v1alpha1') documents.unshift(ownDocument(change))
    else documents.push(ownDocument(change))
  }
}

/** The document of a pointer: `/machine/…` the first one, `/HostnameConfig/…` or `/VolumeConfig/STATE/…` another. */
function locate(documents: YamlDocument[], pointer: string, identify: Identity['identify']): Place {
  const steps = pointerSteps(pointer)
  const [kind, name] = steps
  const known = documents.map((document) => ({ document, ...identify(document) }))
  const named = known.find((each) => each.kind === kind && each.kind !== 'v1alpha1' && (each.name === undefined || each.name === name))
  if (named) return { document: named.document, steps: steps.slice(named.name === undefined ? 1 : 2) }
  const legacy = known.find((each) => each.kind === 'v1alpha1')
  if (!legacy) throw new ConfigError([{ message: `JSON patch "${pointer}": there is no document it could speak of` }])
  return { document: legacy.document, steps }
}

/** The patch documents that turn one list of documents into another; empty when they are equal. */
export function differences(from: YamlDocument[], to: YamlDocument[], { identify }: Identity): YamlDocument[] {
  for (const document of [...from, ...to]) openAliases(document)
  const same = (a: YamlDocument, b: YamlDocument) => {
    const [one, other] = [identify(a), identify(b)]
    return one.kind === other.kind && one.name === other.name
  }
  const patches: YamlDocument[] = []
  for (const document of from) {
    if (to.some((other) => same(document, other))) continue
    const map = document.contents as unknown as YAMLMap
    map.items = [...map.items.filter((pair) => isIdentity(keyOf(pair))), new Pair(new Scalar('$patch'), new Scalar('delete'))]
    patches.push(document)
  }
  for (const document of to) {
    const before = from.find((other) => same(document, other))
    if (!before) {
      patches.push(document)
      continue
    }
    const map = document.contents as unknown as YAMLMap
    const patch = difference(before.contents as unknown as YAMLMap, map, document)
    if (!patch) continue
    patch.items.unshift(
      ...map.items.filter((pair) => isIdentity(keyOf(pair)) && !pairOf(patch, keyOf(pair)) && identify(document).kind !== 'v1alpha1'),
    )
    document.contents = patch as unknown as YamlDocument['contents']
    patches.push(document)
  }
  return patches
}

const isIdentity = (key: string) => key === 'apiVersion' || key === 'kind' || key === 'name'
