/** The installer image of a schematic by the OCI distribution specification: pulled by machines that are upgraded to it. */
import { existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Segment } from '../../oci/image.ts'
import { type Asset, assetOf } from './assets.ts'
import { type ArchivedImage, installerFile, openInstaller } from './build/installer.ts'
import { FactoryError } from './factory-error.ts'
import { findReleases, pathOf, type Release, releasesOf } from './releases.ts'
import type { Schematics } from './schematics.ts'
import type { Workshop } from './workshop.ts'

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
      return (await this.#contents(reference === 'latest' ? newest(images) : reference, id)).index
    }
    if (!digestPattern.test(reference)) throw new FactoryError(400, `digest "${reference.slice(0, 100)}": must be a SHA-256 as in sha256:…`)
    const version = this.#versions.get(`${id} ${reference}`)
    const found = version === undefined ? undefined : (await this.#contents(version, id)).blobs.get(reference)
    if (!found) throw new FactoryError(404, `"${reference}" is not part of installer/${id}: request it by its version first`)
    return found
  }

  async #contents(version: string, id: string): Promise<Contents> {
    const contents = await contentsOf(this.source, releasesOf(this.source.images, version), id)
    for (const digest of contents.blobs.keys()) {
      const [oldest] = this.#versions.keys()
      if (oldest !== undefined && this.#versions.size >= mostKnown) this.#versions.delete(oldest)
      this.#versions.set(`${id} ${digest}`, version)
    }
    return contents
  }
}

function newest(images: string): string {
  const found = findReleases(images).findLast(({ version }) => !version.includes('-'))
  if (!found) throw new FactoryError(404, 'no stable release is held here')
  return found.version
}

interface Contents {
  readonly index: Content
  readonly blobs: ReadonlyMap<string, Content>
}

/** The images of all architectures under one index. */
async function contentsOf(source: RegistrySource, releases: readonly [Release, ...Release[]], id: string): Promise<Contents> {
  // A release of which no installer image was made keeps no machine of another architecture from its own.
  const installable = releases.filter((release) => existsSync(pathOf(release, installerFile)))
  const images = await Promise.all((installable.length > 0 ? installable : [releases[0]]).map((release) => imageOf(source, release, id)))
  const [first] = images
  if (!first) throw new FactoryError(500, 'no release of a version')
  const text = Buffer.from(JSON.stringify({ ...first.index, manifests: images.flatMap(({ index }) => index.manifests) }))
  const hash = new Bun.CryptoHasher('sha256').update(text).digest('hex')
  const asset = { name: `${id}.json`, content: { bytes: text }, size: text.length, etag: `"${hash.slice(0, 32)}"` }
  const top = { digest: `sha256:${hash}`, mediaType: indexType, asset }
  return { index: top, blobs: new Map([...images.flatMap(({ blobs }) => [...blobs]), [top.digest, top]]) }
}

/** The image of an architecture. */
async function imageOf(
  { workshop, schematics }: RegistrySource,
  release: Release,
  id: string,
): Promise<{ index: ArchivedImage['index']; blobs: Contents['blobs'] }> {
  const name = `installer-${release.arch}.tar`
  const { content } = await assetOf(workshop, release, schematics.get(id), name)
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
    const found = new Map<string, Content>()
    for (const [digest, { offset, size }] of blobs) {
      const part: Segment = { file, offset, length: size }
      const asset = { name: digest.slice('sha256:'.length), content: part, size, etag: `"${digest}"` }
      found.set(digest, { digest, mediaType: types.get(digest) ?? octets, asset })
    }
    return { index, blobs: found }
  } finally {
    await input.close()
  }
}
