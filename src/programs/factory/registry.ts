/** The installer image of a schematic by the OCI distribution specification: pulled by machines that are upgraded to it. */
import { open } from 'node:fs/promises'
import type { Segment } from '../../oci/image.ts'
import { type Asset, assetOf, type Workshop } from './assets.ts'
import { openInstaller } from './build/installer.ts'
import { FactoryError } from './factory-error.ts'
import { findReleases, type Release, releaseOf } from './releases.ts'
import type { Schematics } from './schematics.ts'

/** What the registry serves from. */
export interface RegistrySource {
  /** The folder of `findReleases`. */
  readonly images: string
  readonly schematics: Schematics
  readonly workshop: Workshop
}

/** A document or blob with its digest. */
interface Content {
  readonly digest: string
  readonly mediaType: string
  readonly asset: Asset
}

const octets = 'application/octet-stream'
const indexType = 'application/vnd.oci.image.index.v1+json'
const digestPattern = /^sha256:[0-9a-f]{64}$/

/** Digests whose version is remembered. */
const mostKnown = 4096

/** The images of schematics. */
export class InstallerRegistry {
  /** The version that a digest is part of, with the schematic before it: blobs are requested without one. */
  readonly #versions = new Map<string, string>()

  constructor(readonly source: RegistrySource) {}

  /** The content of a path below `/v2/`, as in `installer/SCHEMATIC/manifests/v1.13.100`. Throws FactoryError. */
  async content(path: string): Promise<Content> {
    const { images, schematics } = this.source
    const [, repository = '', id = '', kind = '', reference = ''] = /^([^/]+)\/([^/]+)\/(manifests|blobs)\/([^/]+)$/.exec(path) ?? []
    if (repository !== 'installer')
      throw new FactoryError(404, `image "${path.slice(0, 100)}" is not served here, but installer/SCHEMATIC:VERSION`)
    schematics.get(id)
    if (kind === 'manifests' && !digestPattern.test(reference)) {
      const release = reference === 'latest' ? newest(images) : releaseOf(images, reference)
      return (await this.#contents(release, id)).index
    }
    if (!digestPattern.test(reference)) throw new FactoryError(400, `digest "${reference.slice(0, 100)}": must be a SHA-256 as in sha256:…`)
    const version = this.#versions.get(`${id} ${reference}`)
    const found = version === undefined ? undefined : (await this.#contents(releaseOf(images, version), id)).blobs.get(reference)
    if (!found) throw new FactoryError(404, `"${reference}" is not part of installer/${id}: request it by its version first`)
    return found
  }

  async #contents(release: Release, id: string): Promise<Contents> {
    const contents = await contentsOf(this.source, release, id)
    for (const digest of contents.blobs.keys()) {
      const [oldest] = this.#versions.keys()
      if (oldest !== undefined && this.#versions.size >= mostKnown) this.#versions.delete(oldest)
      this.#versions.set(`${id} ${digest}`, release.version)
    }
    return contents
  }
}

function newest(images: string): Release {
  const found = findReleases(images).findLast(({ version }) => !version.includes('-'))
  if (!found) throw new FactoryError(404, 'no stable release is held here')
  return found
}

interface Contents {
  readonly index: Content
  readonly blobs: ReadonlyMap<string, Content>
}

async function contentsOf({ workshop, schematics }: RegistrySource, release: Release, id: string): Promise<Contents> {
  const name = 'installer-amd64.tar'
  const { content, etag } = await assetOf(workshop, release, schematics.get(id), name)
  if ('bytes' in content) throw new FactoryError(500, `"${name}" is no file`)
  const { file } = content
  const input = await open(file)
  try {
    const read = async (offset: number, length: number) => {
      const bytes = Buffer.alloc(length)
      const { bytesRead } = await input.read(bytes, 0, length, offset)
      return bytes.subarray(0, bytesRead)
    }
    const { index, manifest, blobs } = await openInstaller(read, content.length)
    const types = new Map([...index.manifests, manifest.config, ...manifest.layers].map((each) => [each.digest, each.mediaType]))
    const all = new Map<string, Content>()
    for (const [digest, { offset, size }] of blobs) {
      const part: Segment = { file, offset, length: size }
      const asset = { name: digest.slice('sha256:'.length), content: part, size, etag: `"${digest}"` }
      all.set(digest, { digest, mediaType: types.get(digest) ?? octets, asset })
    }
    const text = Buffer.from(JSON.stringify(index))
    const digest = `sha256:${new Bun.CryptoHasher('sha256').update(text).digest('hex')}`
    const top = { digest, mediaType: indexType, asset: { name: `${id}.json`, content: { bytes: text }, size: text.length, etag } }
    return { index: top, blobs: all.set(digest, top) }
  } finally {
    await input.close()
  }
}
