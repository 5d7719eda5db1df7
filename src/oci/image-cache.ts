/**
 * Images as plain files, served without a registry: manifests by name and by digest below `manifests/`, everything else
 * once below `blob/`. `talosctl image cache-create` writes the folder.
 */
import { parseImageDocument } from './image-document.ts'
import { parseReference } from './reference.ts'

/** What a request to a registry is for. */
export interface RegistryPath {
  readonly repository: string
  readonly kind: 'manifests' | 'blobs' | 'tags'
  readonly reference: string
  /** The registry that is mirrored (`?ns=`), when the client names it. */
  readonly domain?: string
}

const digestPattern = /^sha256:[0-9a-f]{64}$/
const tagPattern = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/

/** Parses path and query of a request; undefined when it is not for an image. */
export function parseRegistryPath(url: string): RegistryPath | undefined {
  if (!URL.canParse(url, 'http://registry')) return undefined
  const { pathname, searchParams } = new URL(url, 'http://registry')
  const [, repository = '', kind, reference = ''] = /^\/v2\/(.+)\/(manifests|blobs|tags)\/([^/]+)$/.exec(decoded(pathname)) ?? []
  const domain = searchParams.get('ns') ?? undefined
  try {
    // Valid names cannot lead out of the folder.
    const parsed = parseReference(`${domain ?? 'registry.invalid'}/${repository}`)
    if (parsed.repository !== repository || parsed.tag || parsed.digest) return undefined
  } catch {
    return undefined
  }
  if (kind === 'blobs' ? !digestPattern.test(reference) : !digestPattern.test(reference) && !tagPattern.test(reference)) return undefined
  return { repository, kind: kind as RegistryPath['kind'], reference, ...(domain && { domain }) }
}

/** Path of a manifest, by tag or digest. File systems of media have no colon in names, so a port is written between underscores. */
export function manifestFile(domain: string, repository: string, reference: string): string {
  const registry = domain.replace(/:(\d+)$/, '_$1_')
  const how = reference.includes(':') ? `digest/${reference.replace(':', '-')}` : `reference/${reference}`
  return `manifests/${registry}/${repository}/${how}`
}

/** Path of a configuration or layer. */
export function blobFile(digest: string): string {
  return `blob/${digest.replace(':', '-')}`
}

/** The files that may answer a request, in order; `domains` apply when the client names no registry. */
export function cacheFiles({ repository, kind, reference, domain }: RegistryPath, domains: readonly string[] = []): string[] {
  if (kind === 'tags') return []
  if (kind === 'blobs') return [blobFile(reference)]
  return (domain ? [domain] : domains).map((one) => manifestFile(one, repository, reference))
}

/** The media type of a manifest. */
export function mediaTypeOf(manifest: string): string {
  const document = parseImageDocument(manifest)
  if (!document) return 'application/octet-stream'
  return document.mediaType || `application/vnd.oci.image.${document.manifests ? 'index' : 'manifest'}.v1+json`
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}
