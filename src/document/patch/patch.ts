/** Patches as users write them: one text, YAML or JSON, a strategic merge or a list of operations. */
import { isMap, isSeq } from 'yaml'
import { ConfigError } from '../config-error.ts'
import { parseStream, type YamlDocument } from '../stream.ts'
import { type Operation, operate, type Place, pointerSteps, readOperations } from './json.ts'
import { isEmpty, openAliases } from './node.ts'
import { directive, mergeDocument, ownDocument } from './strategic.ts'

/** A patch that was understood. */
export type Patch = { operations: Operation[] } | { documents: YamlDocument[] }

/** Reads a patch; one without content changes nothing. Throws ConfigError. */
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

/** What patching has to know about documents. */
export interface Identity {
  /** What tells documents of one configuration apart; throws ConfigError for a document that is none. */
  identify(document: YamlDocument): { kind: string; name?: string; schema: unknown }
}

/** Applies a patch to a list of documents, which is changed in place. */
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
    if (directive(change.contents) === 'delete') {
      if (index >= 0) documents.splice(index, 1)
    } else if (index >= 0) mergeDocument(documents[index]!, change, schema)
    else if (kind === 'v1alpha1') documents.unshift(ownDocument(change))
    else documents.push(ownDocument(change))
  }
}

/** Which document a pointer speaks of: `/machine/…` the first one, `/HostnameConfig/…` or `/VolumeConfig/STATE/…` another. */
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
