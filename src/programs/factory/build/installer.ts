/** An installer image of a release with another command line: its one layer is a plain tar, of which three files are others. */
import type { Segment } from '../../../oci/image.ts'
import { layerMediaType } from '../../../oci/layer.ts'
import { bytesOf, patchSegments, segmentLength, sliceSegments } from '../../../oci/segments.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { TarError, tarBlock, tarPadding } from '../../../wire/tar/format.ts'
import { findTarPlaces, type ReadAt, type TarPlace } from '../../../wire/tar/read.ts'
import { tarEnd, tarHeader } from '../../../wire/tar/write.ts'
import { FactoryError } from '../factory-error.ts'
import { fileNameOf, installFolderOf, type Release } from '../releases.ts'
import type { Patch } from './derived.ts'
import { withFile } from './read-file.ts'

/** The archive of a release for amd64. */
export const installerFile = 'ichor-installer-amd64.tar'
const documentLimit = 64 << 10

/** Something that a document of an image names. */
interface Descriptor {
  mediaType: string
  digest: string
  size: number
}

/** An image in an archive, with where its blobs lie. */
export interface ArchivedImage {
  readonly index: { manifests: Descriptor[] }
  readonly manifest: { config: Descriptor; layers: Descriptor[] }
  readonly config: { rootfs: { diff_ids: string[] } }
  readonly blobs: ReadonlyMap<string, TarPlace>
}

const wrong = (detail: string) => new FactoryError(500, `the installer image of the release: ${detail}: make it again with mkimage.sh`)

/** Reads the documents of an archive that mkimage.sh or this factory has written. Throws FactoryError. */
export async function openInstaller(read: ReadAt, size: number): Promise<ArchivedImage> {
  const places = await findTarPlaces(read, size).catch((error: unknown) => {
    throw error instanceof TarError ? wrong(messageOf(error)) : error
  })
  const found = new Map(places.map((place) => [place.name, place]))
  const document = async <T>(name: string): Promise<T> => {
    const place = found.get(name)
    if (!place || place.size > documentLimit) throw wrong(`it has no "${name}", or a too large one`)
    try {
      return JSON.parse(Buffer.from(await read(place.offset, place.size)).toString()) as T
    } catch (error) {
      throw error instanceof SyntaxError ? wrong(`"${name}" is not JSON`) : error
    }
  }
  const blobOf = (digest: string | undefined) => `blobs/sha256/${digest?.replace('sha256:', '')}`
  const index = await document<ArchivedImage['index']>('index.json')
  const manifest = await document<ArchivedImage['manifest']>(blobOf(index.manifests?.[0]?.digest))
  const config = await document<ArchivedImage['config']>(blobOf(manifest.config?.digest))
  const [layer] = manifest.layers ?? []
  if (
    index.manifests.length !== 1 ||
    manifest.layers.length !== 1 ||
    layer?.mediaType !== layerMediaType ||
    !found.has(blobOf(layer.digest))
  )
    throw wrong('it is not one image of one layer that is not compressed')
  const blobs = places.flatMap((place) =>
    place.name.startsWith('blobs/sha256/') ? [[place.name.replace('blobs/sha256/', 'sha256:'), place] as const] : [],
  )
  return { index, manifest, config, blobs: new Map(blobs) }
}

/** What an installer has another of. */
export interface InstallerOrder {
  /** The manifest of the release itself. */
  readonly before: string
  /** Whole files of `/usr/install/<arch>/`. */
  readonly contents: ReadonlyMap<string, readonly Segment[]>
  /** Where its `vmlinuz.efi` differs, when it is not among them. */
  readonly uki: readonly Patch[]
}

/** The archive with what the order has others of. Throws FactoryError. */
export function installerSegments(release: Release, derived: InstallerOrder): Promise<Segment[]> {
  return withFile(release, installerFile, async ({ path, size, read }) => {
    const { index, manifest, config, blobs } = await openInstaller(read, size)
    const place = blobs.get(manifest.layers[0]?.digest ?? '')
    if (!place) throw wrong('its layer is missing')
    const layer = await changedLayer({ file: path, offset: place.offset, length: place.size }, read, { release, derived })
    const digest = await digestOf(layer)
    const layerSize = sizeOf(layer)
    const changedConfig = json({ ...config, rootfs: { ...config.rootfs, diff_ids: [digest] } })
    const layers = [{ ...manifest.layers[0], digest, size: layerSize }]
    const changedManifest = json({ ...manifest, config: { ...manifest.config, ...described(changedConfig) }, layers })
    const changedIndex = json({ ...index, manifests: [{ ...index.manifests[0], ...described(changedManifest) }] })
    return [
      ...member('oci-layout', [{ bytes: json({ imageLayoutVersion: '1.0.0' }) }]),
      ...member('index.json', [{ bytes: changedIndex }]),
      ...['blobs', 'blobs/sha256'].map((each) => ({ bytes: tarHeader({ path: each, type: 'directory', mode: 0o755 }) })),
      ...member(blobPath(described(changedManifest).digest), [{ bytes: changedManifest }]),
      ...member(blobPath(described(changedConfig).digest), [{ bytes: changedConfig }]),
      ...member(blobPath(digest), layer),
      { bytes: tarEnd },
    ]
  })
}

/** The layer: entries of other files are written again, the kernel image is changed in place, all else stays. */
async function changedLayer(
  layer: { file: string; offset: number; length: number },
  read: ReadAt,
  { release, derived }: { release: Release; derived: InstallerOrder },
): Promise<Segment[]> {
  const inLayer: ReadAt = (offset, length) => read(layer.offset + offset, length)
  const places = new Map((await findTarPlaces(inLayer, layer.length)).map((place) => [place.name, place]))
  const placeOf = (name: string) => {
    const found = places.get(`${installFolderOf(release)}/${name}`)
    if (!found) throw wrong(`its layer has no "${name}"`)
    return found
  }
  const before = placeOf('manifest')
  if (before.size > documentLimit || Buffer.from(await inLayer(before.offset, before.size)).toString() !== derived.before)
    throw new FactoryError(500, `"${fileNameOf(release, installerFile)}" and its manifest are of different builds`)
  const uki = placeOf('vmlinuz.efi')
  const patched = patchSegments(
    [layer],
    derived.uki.map(({ offset, bytes }) => ({ offset: uki.offset + offset, bytes })),
  )
  const changed = [...derived.contents]
    .map(([name, content]) => ({ place: placeOf(name), content }))
    .sort((a, b) => a.place.offset - b.place.offset)
  const parts: Segment[] = []
  let at = 0
  for (const { place, content } of changed) {
    const start = place.offset - tarBlock
    parts.push(...sliceSegments(patched, at, start - at), ...member(place.name, content))
    at = place.offset + place.size + tarPadding(place.size).length
  }
  return [...parts, ...sliceSegments(patched, at, layer.length - at)]
}

const json = (value: object): Buffer => Buffer.from(JSON.stringify(value))

const described = (content: Buffer) => ({
  digest: `sha256:${new Bun.CryptoHasher('sha256').update(content).digest('hex')}`,
  size: content.length,
})

const blobPath = (digest: string): string => `blobs/sha256/${digest.replace('sha256:', '')}`

const sizeOf = (content: readonly Segment[]) => content.reduce((sum, each) => sum + segmentLength(each), 0)

function member(path: string, content: readonly Segment[]): Segment[] {
  const size = sizeOf(content)
  return [{ bytes: tarHeader({ path, type: 'file', mode: 0o644, size }) }, ...content, { bytes: tarPadding(size) }]
}

async function digestOf(content: readonly Segment[]): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256')
  for await (const chunk of bytesOf(content)) hash.update(chunk)
  return `sha256:${hash.digest('hex')}`
}
