/**
 * An OCI image (github.com/opencontainers/image-spec) as one tar archive. The archive is an image layout, which containerd, Podman and
 * recent Docker load; an image with a name also gets the `manifest.json` that Docker before 25 looks for, over the same blobs.
 */
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Segment } from '../../../oci/image.ts'
import { layerMediaType } from '../../../oci/layer.ts'
import { bytesOf } from '../../../oci/segments.ts'
import { tarPadding } from '../../../wire/tar/format.ts'
import { tarEnd, tarHeader } from '../../../wire/tar/write.ts'
import { writeSegments } from './write-segments.ts'

/** A layer as it lies in the archive. */
export interface ArchivedLayer {
  mediaType: string
  /** Digest of the tar. */
  diffId: string
  /** Digest of the blob: of a compressed layer another one. */
  digest: string
  size: number
  content: readonly Segment[]
}

/** How an image is archived. */
export interface ArchivedImage {
  arch: string
  layers: readonly ArchivedLayer[]
  /** What is beside the layers in the image's configuration. */
  config: object
  annotations: Readonly<Record<string, string>>
  /** `repository:tag` that loading gives to the image; without it the image has no name. */
  name?: { repository: string; tag: string }
}

const manifestType = 'application/vnd.oci.image.manifest.v1+json'

/** A layer as it is. */
export async function plainLayer(content: readonly Segment[]): Promise<ArchivedLayer> {
  const hasher = new Bun.CryptoHasher('sha256')
  let size = 0
  for await (const chunk of bytesOf(content)) {
    hasher.update(chunk)
    size += chunk.length
  }
  const digest = `sha256:${hasher.digest('hex')}`
  return { mediaType: layerMediaType, diffId: digest, digest, size, content }
}

/** A layer compressed with gzip into a file, which stays for as long as the layer is used. */
export async function gzippedLayer(file: string, content: readonly Segment[], level: number): Promise<ArchivedLayer> {
  const hasher = new Bun.CryptoHasher('sha256')
  const hashed = async function* () {
    for await (const chunk of bytesOf(content)) {
      hasher.update(chunk)
      yield chunk
    }
  }
  await pipeline(Readable.from(hashed()), createGzip({ level }), createWriteStream(file))
  const layer = await plainLayer([{ file, offset: 0, length: Bun.file(file).size }])
  return { ...layer, mediaType: `${layerMediaType}+gzip`, diffId: `sha256:${hasher.digest('hex')}` }
}

/** Writes the archive. Equal images give equal bytes. */
export async function writeImageArchive(path: string, { arch, layers, config, annotations, name }: ArchivedImage): Promise<void> {
  const rootfs = { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) }
  const configuration = json({ architecture: arch, os: 'linux', ...config, rootfs })
  const manifest = json({
    schemaVersion: 2,
    mediaType: manifestType,
    config: described('application/vnd.oci.image.config.v1+json', configuration),
    layers: layers.map(({ mediaType, digest, size }) => ({ mediaType, digest, size })),
    annotations,
  })
  const index = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [
      {
        ...described(manifestType, manifest),
        platform: { architecture: arch, os: 'linux' },
        ...(name && { annotations: nameAnnotations(name) }),
      },
    ],
  }
  const docker = name ? small('manifest.json', dockerManifest(name, hashOf(configuration), layers)) : []
  const documents = [manifest, configuration].map((bytes) => ({ digest: hashOf(bytes), size: bytes.length, content: [{ bytes }] }))
  await writeLayout(path, index, [...documents, ...layers], docker)
}

/** Writes an image layout: an index, the blobs that it leads to, and what else the archive has at its end. */
export async function writeLayout(
  path: string,
  index: object,
  blobs: readonly Pick<ArchivedLayer, 'digest' | 'size' | 'content'>[],
  end: readonly Segment[] = [],
): Promise<void> {
  await writeSegments(path, [
    ...small('oci-layout', json({ imageLayoutVersion: '1.0.0' })),
    ...small('index.json', json(index)),
    ...['blobs', 'blobs/sha256'].map((each) => ({ bytes: tarHeader({ path: each, type: 'directory', mode: 0o755 }) })),
    ...blobs.flatMap(({ digest, size, content }) => member(blobPath(digest), size, content)),
    ...end,
    { bytes: tarEnd },
  ])
}

/** The names under which containerd and Podman store an image. */
const nameAnnotations = ({ repository, tag }: { repository: string; tag: string }) => ({
  'io.containerd.image.name': `docker.io/library/${repository}:${tag}`,
  'org.opencontainers.image.ref.name': tag,
})

/** The list of images in an archive as `docker save` writes it (moby/docker-image-spec). */
const dockerManifest = ({ repository, tag }: { repository: string; tag: string }, config: string, layers: readonly ArchivedLayer[]) =>
  json([{ Config: blobPath(config), RepoTags: [`${repository}:${tag}`], Layers: layers.map(({ digest }) => blobPath(digest)) }])

const json = (value: object): Buffer => Buffer.from(JSON.stringify(value))

const hashOf = (bytes: Uint8Array): string => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

const described = (mediaType: string, content: Buffer) => ({ mediaType, digest: `sha256:${hashOf(content)}`, size: content.length })

const blobPath = (digest: string): string => `blobs/sha256/${digest.replace('sha256:', '')}`

const member = (name: string, size: number, content: readonly Segment[]): Segment[] => [
  { bytes: tarHeader({ path: name, type: 'file', mode: 0o644, size }) },
  ...content,
  { bytes: tarPadding(size) },
]

const small = (name: string, bytes: Buffer): Segment[] => member(name, bytes.length, [{ bytes }])
