/** A registry with one image in it, for machines that use it as a mirror. */
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { run } from '../../rootfs/build/run.ts'
import { blobFile, manifestFile } from '../../src/oci/image-cache.ts'
import { parseReference } from '../../src/oci/reference.ts'
import { serveCache } from '../../src/programs/talosctl/image-cache/serve.ts'

/** Serves an archive of an image (OCI layout) under a reference, unpacked into a folder, until it is disposed of. */
export async function serveImage(
  archive: string,
  { reference, folder, hostname, port }: { reference: string; folder: string; hostname: string; port: number },
): Promise<AsyncDisposable> {
  const { domain, repository, tag = '' } = parseReference(reference)
  const layout = join(folder, 'layout')
  mkdirSync(layout, { recursive: true })
  await run(['tar', '-xf', archive, '-C', layout])
  const blobOf = (digest: string) => join(layout, 'blobs', digest.replace(':', '/'))
  const keep = (source: string, name: string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    copyFileSync(source, join(folder, name))
  }
  const [described] = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')).manifests
  const manifest = JSON.parse(readFileSync(blobOf(described.digest), 'utf8'))
  for (const name of [tag, described.digest]) keep(blobOf(described.digest), manifestFile(domain, repository, name))
  for (const { digest } of [manifest.config, ...manifest.layers]) keep(blobOf(digest), blobFile(digest))
  const server = serveCache({ folder, hostname, port, domains: [domain] })
  return { [Symbol.asyncDispose]: () => server.close() }
}
