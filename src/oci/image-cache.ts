/**
 * Images kept as plain files, to be served without any registry: manifests by name and by digest below `manifests/`, everything
 * else once below `blob/`. The folder is made by `talosctl image cache-create` and read by whoever serves it.
 */
import { parseImageDocument } from './image-document.ts'
import { parseReference } from './reference.ts'

/** What a request to a registry is for. */
export interface RegistryPath {
  readonly repository: string
  readonly kind: 'manifests' | 'blobs' | 'tags'
  readonly reference: string
  /** The registry that is stood in for (`?ns=`), where the client says it. */
  readonly domain?: string
}

const digestPattern = /^sha256:[0-9a-f]{64}$/
const tagPattern = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/

/** Reads path and query of a request; undefined when it is for no image. */
export function parseRegistryPath(url: string): RegistryPath | undefined {
  if (!URL.canParse(url, 'http://registry')) return undefined
  const { pathname, searchParams } = new URL(url, 'http://registry')
  const [, repository = '', kind, reference = ''] = /^\/v2\/(.+)\/(manifests|blobs|tags)\/([^/]+)$/.exec(decoded(pathname)) ?? []
  const domain = searchParams.get('ns') ?? undefined
  try {
    // Names that are names cannot lead out of a folder.
    const parsed = parseReference(`${domain ?? 'registry.invalid'}/${repository}`)
    if (parsed.repository !== repository || parsed.tag || parsed.digest) return undefined
  } catch {
    return undefined
  }
  if (kind === 'blobs' ? !digestPattern.test(reference) : !digestPattern.test(reference) && !tagPattern.test(reference)) return undefined
  return { repository, kind: kind as RegistryPath['kind'], reference, ...(domain && { domain }) }
}

/** Where a manifest lies, by tag or digest. */
export function manifestFile(domain: string, repository: string, reference: string): string {
  const how = reference.includes(':') ? `digest/${reference.replace(':', '-')}` : `reference/${reference}`
  return `manifests/${domain}/${repository}/${how}`
}

/** Where a configuration or layer lies. */
export function blobFile(digest: string): string {
  return `blob/${digest.replace(':', '-')}`
}

/** The files that may answer a request, in order; `domains` stand in where the client names no registry. */
export function cacheFiles({ repository, kind, reference, domain }: RegistryPath, domains: readonly string[] = []): string[] {
  if (kind === 'tags') return []
  if (kind === 'blobs') return [blobFile(reference)]
  return (domain ? [domain] : domains).map((one) => manifestFile(one, repository, reference))
}

/** The media type that a manifest says it has. */
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
