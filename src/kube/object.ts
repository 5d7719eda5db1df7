import { LineCounter, parseAllDocuments } from 'yaml'
import { isObject } from '../document/is-object.ts'
import { duplicateKey } from '../document/unique-keys.ts'
import { messageOf } from '../wire/error-message.ts'
import { KubeError } from './errors.ts'

/** An object on which another depends. */
export interface OwnerReference {
  apiVersion?: string
  kind: string
  name: string
  uid?: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}

/** Metadata of every Kubernetes object. */
export interface ObjectMeta {
  name?: string
  /** A prefix from which the server makes the name. */
  generateName?: string
  namespace?: string | undefined
  uid?: string
  resourceVersion?: string
  creationTimestamp?: string
  deletionTimestamp?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
  ownerReferences?: OwnerReference[]
}

/** A Kubernetes object of any kind. */
export interface KubeObject {
  apiVersion: string
  kind: string
  metadata: ObjectMeta
  [key: string]: unknown
}

/** Larger manifests are refused before they are parsed. */
const largest = 4 * 1024 * 1024

/** Parses the objects of a YAML stream: expands lists, skips empty documents. Throws KubeError 'Malformed' with the position. */
export function parseManifest(text: string, name: string): KubeObject[] {
  const malformed = (detail: string) => new KubeError(0, 'Malformed', `manifest "${name}": ${detail}`)
  if (text.length > largest) throw malformed(`larger than ${largest} bytes`)
  const objects: KubeObject[] = []
  const lines = new LineCounter()
  const documents = parseAllDocuments(text, { logLevel: 'silent', uniqueKeys: false, lineCounter: lines })
  for (const [index, document] of [...documents].entries()) {
    const error = document.errors[0]
    if (error) throw malformed(`document ${index + 1}: ${error.message.split('\n')[0]}`)
    const duplicate = duplicateKey(document, lines)
    if (duplicate) throw malformed(`document ${index + 1}: ${duplicate}`)
    let value: unknown
    try {
      value = document.toJS({ maxAliasCount: 100 })
    } catch (error) {
      throw malformed(`document ${index + 1}: ${messageOf(error)}`)
    }
    if (value === null || value === undefined) continue
    const items = isObject(value) && value.kind === 'List' && Array.isArray(value.items) ? value.items : [value]
    for (const item of items) objects.push(asObject(item, (detail) => malformed(`document ${index + 1}: ${detail}`)))
  }
  return objects
}

/** `kind namespace/name`, for messages. */
export function describeObject({ kind, metadata }: KubeObject): string {
  return `${kind} ${metadata.namespace ? `${metadata.namespace}/` : ''}${metadata.name}`
}

function asObject(value: unknown, malformed: (detail: string) => KubeError): KubeObject {
  if (!isObject(value)) throw malformed('is not an object')
  const { apiVersion, kind, metadata } = value
  if (typeof apiVersion !== 'string' || !apiVersion) throw malformed('apiVersion is missing')
  if (typeof kind !== 'string' || !kind) throw malformed('kind is missing')
  if (!isObject(metadata) || typeof metadata.name !== 'string' || !metadata.name) throw malformed(`${kind} has no metadata.name`)
  return value as KubeObject
}
