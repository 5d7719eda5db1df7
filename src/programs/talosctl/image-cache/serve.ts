import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFiles, mediaTypeOf, parseRegistryPath } from '../../../oci/image-cache.ts'

/** What is served and where. */
export interface ServeOptions {
  readonly folder: string
  readonly hostname: string
  readonly port: number
  /** The registries that are stood in for, where a client does not say which it means. */
  readonly domains: readonly string[]
  readonly tls?: { readonly cert: string; readonly key: string } | undefined
}

/** Serves a cache as a registry that is only read. */
export function serveCache({ folder, hostname, port, domains, tls }: ServeOptions): { url: string; close(): Promise<void> } {
  const server = Bun.serve({
    hostname,
    port,
    idleTimeout: 120,
    ...(tls && { tls }),
    async fetch(request) {
      if (request.method !== 'GET' && request.method !== 'HEAD') return refusal(405, 'UNSUPPORTED', 'this registry is read-only')
      const { pathname, search } = new URL(request.url)
      if (/^\/v2\/?$/.test(pathname)) return Response.json({})
      const requested = parseRegistryPath(pathname + search)
      if (!requested) return refusal(404, 'NAME_UNKNOWN', 'no such page')
      for (const path of cacheFiles(requested, domains)) {
        const file = Bun.file(join(folder, path))
        if (!(await file.exists())) continue
        if (requested.kind === 'manifests') return manifest(readFileSync(join(folder, path)), request.method)
        const headers = { 'content-type': 'application/octet-stream', 'docker-content-digest': requested.reference }
        // The server itself answers ranges of a file, and leaves its bytes out of the answer to HEAD.
        return new Response(file, { headers })
      }
      return refusal(
        404,
        requested.kind === 'blobs' ? 'BLOB_UNKNOWN' : 'MANIFEST_UNKNOWN',
        `${requested.reference} of "${requested.repository}" is not held here`,
      )
    },
  })
  return { url: server.url.origin, close: () => server.stop(true) }
}

function manifest(bytes: Buffer, method: string): Response {
  const digest = `sha256:${new Bun.CryptoHasher('sha256').update(bytes).digest('hex')}`
  const headers = { 'content-type': mediaTypeOf(bytes.toString()), 'docker-content-digest': digest, 'content-length': String(bytes.length) }
  return new Response(method === 'HEAD' ? null : new Uint8Array(bytes), { headers })
}

function refusal(status: number, code: string, message: string): Response {
  return Response.json({ errors: [{ code, message }] }, { status })
}
