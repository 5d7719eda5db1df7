/**
 * A whole machine configuration: the v1alpha1 document and any number of others.
 *
 * A container never changes. Patching one returns another; both keep comments and order, and text without changes is kept to the
 * byte.
 */
import { ConfigError, type Issue } from '../../document/config-error.ts'
import { type Decoded, decode } from '../../document/decode.ts'
import { type DocumentKind, type DocumentOf, documentLabel, type Mode, type Reporter } from '../../document/kind.ts'
import { isEmpty } from '../../document/patch/node.ts'
import { applyPatch, differences, type Identity, type Patch, parsePatch } from '../../document/patch/patch.ts'
import { formatPath } from '../../document/path.ts'
import { parseStream, type YamlDocument } from '../../document/stream.ts'
import { unsupported } from '../../document/unsupported.ts'
import { writeStream } from '../../document/write.ts'
import { conflicts, controlPlaneKinds } from './conflicts.ts'
import { V1Alpha1, type V1Alpha1Document } from './documents/v1alpha1.ts'
import { siblingProblems, unrecoverable } from './encryptions.ts'
import { type Identified, identify, schemaOf } from './identify.ts'
import { exclusiveKinds } from './kinds.ts'

/** One document with its kind, value and place. */
export interface ConfigDocument<T = unknown> extends Identified {
  readonly value: T
  readonly yaml: YamlDocument
  readonly locate: Decoded<T>['locate']
}

/** The result of a validation; only errors make a configuration unusable. */
export interface Validation {
  errors: Issue[]
  warnings: Issue[]
}

/** A machine configuration that could be parsed. */
export class ConfigContainer {
  private constructor(
    readonly text: string,
    readonly documents: readonly ConfigDocument[],
  ) {}

  /** Parses a configuration. Throws ConfigError with everything that is wrong. */
  static parse(input: string | Uint8Array): ConfigContainer {
    const stream = parseStream(input)
    const issues: Issue[] = []
    const documents: ConfigDocument[] = []
    const budget = { nodes: 0 }
    for (const yaml of stream.documents) {
      if (isEmpty(yaml.contents)) continue
      try {
        const identified = identify(yaml, stream.lines)
        const decoded = decode(yaml.contents, schemaOf(identified.kind), {
          document: yaml,
          lines: stream.lines,
          label: identified.label,
          budget,
        })
        issues.push(...decoded.issues)
        documents.push({ ...identified, value: decoded.value, yaml, locate: decoded.locate })
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error
        issues.push(...error.issues)
      }
    }
    issues.push(...duplicates(documents))
    if (issues.length) throw new ConfigError(issues)
    if (documents.length === 0) throw new ConfigError([{ message: 'the configuration is empty' }])
    return new ConfigContainer(stream.text, documents)
  }

  /** The v1alpha1 document, if there is one. */
  get v1alpha1(): V1Alpha1Document | undefined {
    return this.find(V1Alpha1)
  }

  /** The first document of a kind, of this name if one is given. */
  find<K extends DocumentKind>(kind: K, name?: string): DocumentOf<K> | undefined {
    return this.#of(kind).find((document) => name === undefined || document.name === name)?.value
  }

  /** All documents of a kind, in order. */
  findAll<K extends DocumentKind>(kind: K): DocumentOf<K>[] {
    return this.#of(kind).map(({ value }) => value)
  }

  #of<K extends DocumentKind>(kind: K): ConfigDocument<DocumentOf<K>>[] {
    return this.documents.filter((document): document is ConfigDocument<DocumentOf<K>> => document.kind === kind)
  }

  /** Checks the rules of all documents, for a machine of this mode, and those that only the machine itself can check. */
  validate(mode: Mode, ownRules?: (config: V1Alpha1Document, report: Reporter) => void): Validation {
    const found: Validation = { errors: [], warnings: [] }
    for (const document of this.documents) {
      document.kind.rules?.(document.value, reporter(document, found), mode)
      if (document.kind === V1Alpha1) ownRules?.(document.value as V1Alpha1Document, reporter(document, found))
      const { error } = reporter(document, found)
      if (document.kind.notYet) error([], notSupported(document.kind.notYet))
      for (const { path, instead } of unsupported(document.kind.schema, document.value)) error(path, notSupported(instead))
      const legacy = this.v1alpha1
      if (legacy?.machine?.type === 'worker' && controlPlaneKinds.includes(document.kind))
        error([], 'only control planes have this document: leave it out on a worker')
      for (const conflict of conflicts) {
        const path = legacy && conflict.kind === document.kind ? conflict.with(legacy, document.value) : undefined
        if (path) reporter(document, found).error([], `"${path}" is set in the v1alpha1 document too: keep one of the two`)
      }
    }
    for (const message of siblingProblems(this)) found.errors.push({ message })
    const message = unrecoverable(this)
    if (message) found.warnings.push({ message })
    return found
  }

  /** The configuration after some patches, each a text; validated again as a whole. */
  patch(...patches: (string | Uint8Array)[]): ConfigContainer {
    const parsed = patches.map((patch) => parsePatch(patch))
    const changes = parsed.filter((patch) => ('operations' in patch ? patch.operations : patch.documents).length > 0)
    if (changes.length === 0) return this
    return ConfigContainer.parse(patchText(this.text, changes))
  }

  /** The strategic merge patch from this configuration to another; empty when they mean the same. */
  difference(to: ConfigContainer): string {
    const patches = differences(ownDocuments(this.text), ownDocuments(to.text), identity)
    return patches.length ? writeStream(patches, to.text) : ''
  }

  toString(): string {
    return this.text
  }

  get bytes(): Uint8Array {
    return new TextEncoder().encode(this.text)
  }
}

const notSupported = (instead: string) => `not supported by this release: ${instead}`

/** The nodes of a container are shared, so changes are made on copies. */
const ownDocuments = (text: string): YamlDocument[] => parseStream(text).documents.filter(({ contents }) => !isEmpty(contents))

const identity: Identity = {
  identify(document) {
    const { kind, name } = identify(document)
    return { kind: kind.kind, ...(name !== undefined && { name }), schema: schemaOf(kind) }
  },
}

function patchText(text: string, patches: Patch[]): string {
  const documents = ownDocuments(text)
  for (const patch of patches) applyPatch(documents, patch, identity)
  return writeStream(documents, text)
}

function reporter({ label, locate }: ConfigDocument, into: Validation): Reporter {
  const report = (list: Issue[]) => (path: readonly (string | number)[], message: string) => {
    list.push({ document: label, path: formatPath(path), ...locate(path), message })
  }
  return { error: report(into.errors), warning: report(into.warnings) }
}

/** Documents that conflict, or have the same name. */
function duplicates(documents: ConfigDocument[]): Issue[] {
  const issues: Issue[] = []
  const seen = new Map<string, ConfigDocument>()
  for (const document of documents) {
    const { kind, name } = document
    const group = exclusiveKinds.findIndex((kinds) => kinds.includes(kind))
    const keys = [documentLabel(kind.kind, name), ...(group >= 0 && name ? [`group ${group} ${name}`] : [])]
    const other = keys.map((key) => seen.get(key)).find((each) => each !== undefined)
    for (const key of keys) seen.set(key, document)
    if (!other) continue
    const { line } = other.locate([]) ?? {}
    const message =
      other.kind === kind
        ? `a second document of this kind, the first begins on line ${line}`
        : `${other.label} on line ${line} has that name already`
    issues.push({ document: document.label, ...document.locate([]), message })
  }
  return issues
}
