import { LineCounter, parseAllDocuments } from 'yaml'
import { duplicateKey } from '../document/unique-keys.ts'
import { KubeError } from './errors.ts'

/** What every Kubernetes object has. */
export interface ObjectMeta {
  name?: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  deletionTimestamp?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
  ownerReferences?: { kind: string; name: string; controller?: boolean }[]
}

/** A Kubernetes object of any kind. */
export interface KubeObject {
  apiVersion: string
  kind: string
  metadata: ObjectMeta
  [key: string]: unknown
}

/** Manifests larger than this are refused, parsed or not. */
const largest = 4 * 1024 * 1024

/** Reads the objects of a YAML stream, lists opened and empty documents left out; throws KubeError 'Malformed' that says where. */
export function parseManifest(text: string, name: string): KubeObject[] {
  const wrong = (detail: string) => new KubeError(0, 'Malformed', `manifest "${name}": ${detail}`)
  if (text.length > largest) throw wrong(`larger than ${largest} bytes`)
  const objects: KubeObject[] = []
  const lines = new LineCounter()
  const documents = parseAllDocuments(text, { logLevel: 'silent', uniqueKeys: false, lineCounter: lines })
  for (const [index, document] of [...documents].entries()) {
    const error = document.errors[0]
    if (error) throw wrong(`document ${index + 1}: ${error.message.split('\n')[0]}`)
    const duplicate = duplicateKey(document, lines)
    if (duplicate) throw wrong(`document ${index + 1}: ${duplicate}`)
    let value: unknown
    try {
      value = document.toJS({ maxAliasCount: 100 })
    } catch (error) {
      throw wrong(`document ${index + 1}: ${error instanceof Error ? error.message : String(error)}`)
    }
    if (value === null || value === undefined) continue
    const items = isObject(value) && value.kind === 'List' && Array.isArray(value.items) ? value.items : [value]
    for (const item of items) objects.push(asObject(item, (detail) => wrong(`document ${index + 1}: ${detail}`)))
  }
  return objects
}

/** `kind namespace/name`, as people point at an object. */
export function describeObject({ kind, metadata }: KubeObject): string {
  return `${kind} ${metadata.namespace ? `${metadata.namespace}/` : ''}${metadata.name}`
}

function asObject(value: unknown, wrong: (detail: string) => KubeError): KubeObject {
  if (!isObject(value)) throw wrong('is not an object')
  const { apiVersion, kind, metadata } = value
  if (typeof apiVersion !== 'string' || !apiVersion) throw wrong('apiVersion is missing')
  if (typeof kind !== 'string' || !kind) throw wrong('kind is missing')
  if (!isObject(metadata) || typeof metadata.name !== 'string' || !metadata.name) throw wrong(`${kind} has no metadata.name`)
  return value as KubeObject
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
