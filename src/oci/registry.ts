/**
 * The responses of a read-only image registry (OCI distribution specification), as values; listening and reading files are
 * the caller's part.
 */
import { parseRange } from './byte-range.ts'
import type { ImageLayer, ImageRecord, ImageTable } from './image.ts'
import { formatReference, parseReference } from './reference.ts'

/** A request to the registry. */
export interface RegistryRequest {
  method: string
  /** Path and query, as on the request line. */
  url: string
  /** Lower-case header names. */
  headers: { get(name: string): string | null }
}

/** A response: text, or bytes `start`…`start+length` of a layer. */
export interface RegistryAnswer {
  status: number
  headers: Record<string, string>
  body?: { text: string } | { layer: ImageLayer; start: number; length: number }
}

/** A table of images indexed by name and digest. */
export interface Registry {
  answer(request: RegistryRequest): RegistryAnswer
}

const octets = 'application/octet-stream'

/** Builds the registry of the table's images, each served under its own host (`?ns=`), or under any when none is given. */
export function registryOf({ images }: ImageTable): Registry {
  const byName = new Map<string, ImageRecord>()
  const tags = new Map<string, Set<string>>()
  const blobs = new Map<string, { text: string } | { layer: ImageLayer }>()
  for (const image of images) {
    const reference = parseReference(image.reference)
    const tag = reference.tag ?? 'latest'
    for (const domain of ['', reference.domain]) {
      const name = `${domain}/${reference.repository}`
      byName.set(`${name}:${tag}`, image)
      byName.set(`${name}@${image.digest}`, image)
      tags.set(name, (tags.get(name) ?? new Set()).add(tag))
    }
    blobs.set(image.config.digest, { text: image.config.text })
    blobs.set(image.digest, { text: image.manifest })
    for (const layer of image.layers) blobs.set(layer.digest, { layer })
  }

  const manifest = (name: string, reference: string): RegistryAnswer => {
    const image = byName.get(reference.includes(':') ? `${name}@${reference}` : `${name}:${reference}`)
    if (!image) return refusal(404, 'MANIFEST_UNKNOWN', `manifest "${reference}" of "${name}" is not held here`)
    const headers = { 'content-type': image.mediaType, 'docker-content-digest': image.digest }
    return { status: 200, headers, body: { text: image.manifest } }
  }

  const blob = (digest: string, range: string | null): RegistryAnswer => {
    const found = blobs.get(digest)
    if (!found) return refusal(404, 'BLOB_UNKNOWN', `blob "${digest}" is not held here`)
    const headers = { 'content-type': octets, 'docker-content-digest': digest, etag: `"${digest}"`, 'accept-ranges': 'bytes' }
    if ('text' in found) return { status: 200, headers, body: found }
    const size = found.layer.size
    const part = range === null ? undefined : parseRange(range, size)
    if (part === 'unsatisfiable') {
      return { ...refusal(416, 'BLOB_UNKNOWN', 'the range lies outside the blob'), headers: { 'content-range': `bytes */${size}` } }
    }
    if (!part) return { status: 200, headers, body: { layer: found.layer, start: 0, length: size } }
    const { start, end } = part
    const partial = { ...headers, 'content-range': `bytes ${start}-${end}/${size}` }
    return { status: 206, headers: partial, body: { layer: found.layer, start, length: end - start + 1 } }
  }

  const route = (request: RegistryRequest): RegistryAnswer => {
    const question = request.url.indexOf('?')
    const path = decode(question < 0 ? request.url : request.url.slice(0, question))
    const domain = question < 0 ? '' : (new URLSearchParams(request.url.slice(question + 1)).get('ns') ?? '')
    if (path === '/healthz') return { status: 200, headers: { 'content-type': 'text/plain' }, body: { text: 'ok\n' } }
    if (path === '/v2' || path === '/v2/') return { status: 200, headers: { ...json }, body: { text: '{}' } }
    const [, repository, kind, reference] = path?.match(/^\/v2\/(.+)\/(manifests|blobs|tags)\/([^/]+)$/) ?? []
    if (!repository || !kind || !reference) return refusal(404, 'NAME_UNKNOWN', 'no such page')
    const name = `${domain}/${repository}`
    if (kind === 'manifests') return manifest(name, reference)
    if (kind === 'blobs') return blob(reference, request.headers.get('range'))
    const known = tags.get(name)
    if (reference !== 'list' || !known) return refusal(404, 'NAME_UNKNOWN', `repository "${repository}" is not held here`)
    return { status: 200, headers: { ...json }, body: { text: JSON.stringify({ name: repository, tags: [...known].sort() }) } }
  }

  return {
    answer(request) {
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        const answer = refusal(405, 'UNSUPPORTED', 'this registry is read-only')
        return { ...answer, headers: { ...answer.headers, allow: 'GET, HEAD' } }
      }
      const answer = route(request)
      const length = !answer.body ? 0 : 'text' in answer.body ? Buffer.byteLength(answer.body.text) : answer.body.length
      answer.headers['content-length'] = String(length)
      return request.method === 'HEAD' ? { status: answer.status, headers: answer.headers } : answer
    },
  }
}

/** Whether the table contains this reference. */
export function holds({ images }: ImageTable, reference: string): boolean {
  const wanted = formatReference(parseReference(reference))
  return images.some((image) => formatReference(parseReference(image.reference)) === wanted)
}

const json = { 'content-type': 'application/json' }

function refusal(status: number, code: string, message: string): RegistryAnswer {
  return { status, headers: { ...json }, body: { text: JSON.stringify({ errors: [{ code, message }] }) } }
}

function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}
