/** Fetches images into a folder of plain files. A file is there whole or not at all, so that what is there need not be fetched again. */

import { createHash } from 'node:crypto'
import { createWriteStream, existsSync } from 'node:fs'
import { copyFile, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { finished } from 'node:stream/promises'
import { blobFile, manifestFile } from '../../../oci/image-cache.ts'
import type { Reference } from '../../../oci/reference.ts'
import { RegistryError, type RemoteManifest, type RemoteRegistry } from '../../../oci/remote-registry.ts'

/** What is fetched and where to. */
export interface FillOptions {
  readonly folder: string
  /** `os/architecture`, perhaps with a variant; only these of an image for several. */
  readonly platforms: readonly string[]
  /** Signatures that lie beside an image are fetched too. */
  readonly signatures: boolean
  /** Another folder of blobs: looked into first, and added to. */
  readonly layers?: string | undefined
  readonly progress?: (bytes: number) => void
}

interface Descriptor {
  readonly mediaType?: string
  readonly digest: string
  readonly size: number
  readonly platform?: { readonly os: string; readonly architecture: string; readonly variant?: string }
}

interface Manifest {
  readonly manifests?: readonly Descriptor[]
  readonly config?: Descriptor
  readonly layers?: readonly Descriptor[]
}

/** Fetches an image with all that belongs to it; gives its digest. Throws RegistryError. */
export async function fillCache(registry: RemoteRegistry, reference: Reference, options: FillOptions): Promise<string> {
  const top = await registry.manifest(reference)
  await fetchManifest(registry, reference, top, options)
  if (!reference.digest)
    await write(join(options.folder, manifestFile(reference.domain, reference.repository, reference.tag ?? 'latest')), top.bytes)
  if (options.signatures) await fetchSignatures(registry, reference, top.digest, options)
  return top.digest
}

async function fetchManifest(registry: RemoteRegistry, reference: Reference, found: RemoteManifest, options: FillOptions): Promise<void> {
  const { domain, repository } = reference
  const manifest = JSON.parse(Buffer.from(found.bytes).toString()) as Manifest
  if (manifest.manifests) {
    const wanted = manifest.manifests.filter(({ platform }) => platform && options.platforms.some((one) => fits(one, platform)))
    if (wanted.length === 0)
      throw new RegistryError(`image "${domain}/${repository}" has nothing for ${options.platforms.join(', ')}`, 'missing')
    for (const { digest } of wanted)
      await fetchManifest(registry, reference, await registry.manifest({ domain, repository, digest }), options)
  }
  for (const { digest } of [...(manifest.config ? [manifest.config] : []), ...(manifest.layers ?? [])])
    await fetchBlob(registry, reference, digest, options)
  // Last, so that a manifest that is there has all it names.
  await write(join(options.folder, manifestFile(domain, repository, found.digest)), found.bytes)
}

/** Cosign keeps signatures under a tag made of the digest. */
async function fetchSignatures(
  registry: RemoteRegistry,
  { domain, repository }: Reference,
  digest: string,
  options: FillOptions,
): Promise<void> {
  const tag = `${digest.replace(':', '-')}.sig`
  try {
    const found = await registry.manifest({ domain, repository, tag })
    await fetchManifest(registry, { domain, repository, tag }, found, options)
    await write(join(options.folder, manifestFile(domain, repository, tag)), found.bytes)
  } catch (error) {
    if (!(error instanceof RegistryError) || error.reason !== 'missing') throw error
  }
}

async function fetchBlob(
  registry: RemoteRegistry,
  reference: Reference,
  digest: string,
  { folder, layers, progress }: FillOptions,
): Promise<void> {
  if (!/^sha256:[0-9a-f]{64}$/.test(digest)) throw new RegistryError(`digest "${digest}" is not understood`, 'broken')
  const path = join(folder, blobFile(digest))
  if (existsSync(path)) return
  const kept = layers && join(layers, digest.replace(':', '-'))
  await mkdir(dirname(path), { recursive: true })
  const part = `${path}.part`
  try {
    if (kept && existsSync(kept)) await copyFile(kept, part)
    else await download(registry, reference, digest, part, progress)
    if (kept && !existsSync(kept)) {
      await mkdir(layers, { recursive: true })
      await copyFile(part, `${kept}.part`)
      await rename(`${kept}.part`, kept)
    }
    await rename(part, path)
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}

async function download(
  registry: RemoteRegistry,
  reference: Reference,
  digest: string,
  path: string,
  progress?: (bytes: number) => void,
): Promise<void> {
  const file = createWriteStream(path)
  const written = finished(file)
  written.catch(() => {})
  try {
    for await (const chunk of registry.blob(reference, digest)) {
      progress?.(chunk.length)
      if (!file.write(chunk)) await Promise.race([new Promise((resolve) => file.once('drain', resolve)), written])
    }
  } finally {
    file.end()
  }
  await written
}

async function write(path: string, bytes: Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(`${path}.part`, bytes)
  await rename(`${path}.part`, path)
}

function fits(wanted: string, { os, architecture, variant }: NonNullable<Descriptor['platform']>): boolean {
  const [wantedOs, wantedArchitecture, wantedVariant] = wanted.split('/')
  return os === wantedOs && architecture === wantedArchitecture && (!wantedVariant || wantedVariant === variant)
}

/** The digest of bytes as registries write it. */
export function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}
