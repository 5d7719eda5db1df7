/** Images by what the operator names: an archive, a folder in the OCI image layout, or a reference in a registry. */
import { createHash } from 'node:crypto'
import { createReadStream, existsSync, statSync } from 'node:fs'
import { open, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type ImageDocument, parseArchitecture, parseImageDocument } from '../../../oci/image-document.ts'
import { parseReference } from '../../../oci/reference.ts'
import { directHosts, RemoteRegistry } from '../../../oci/remote-registry.ts'
import { TarError } from '../../../wire/tar/format.ts'
import { findTarPlaces } from '../../../wire/tar/read.ts'
import { UsageError } from '../failure.ts'
import { dockerCredentials } from '../image/docker-credentials.ts'
import type { Io } from '../io.ts'

/** An image that can be read. */
export interface ImageSource {
  /** As the operator named it. */
  readonly origin: string
  /** The manifest or index that stands for the image. */
  top(): Promise<Uint8Array>
  /** A further manifest, by its digest. */
  document(digest: string): Promise<Uint8Array>
  /** A layer; its digest is verified by the end. */
  blob(digest: string): AsyncIterable<Uint8Array>
}

/** How an image is found. */
export interface SourceOptions {
  readonly io: Pick<Io, 'env' | 'signal'>
  /** The registry may use HTTP, or a certificate that nobody knows. */
  readonly insecure?: boolean | undefined
}

const documentLimit = 4 << 20

/** Opens an image: a path that exists is a folder or an archive, anything else a reference. Throws UsageError. */
export async function openImage(name: string, { io, insecure }: SourceOptions): Promise<ImageSource> {
  if (existsSync(name)) return statSync(name).isDirectory() ? folderSource(name) : await archiveSource(name)
  if (/^[./~]/.test(name) || name.endsWith('.tar')) throw new UsageError(`image "${name}": there is no such file or folder`)
  const reference = parseReference(name)
  const registry = new RemoteRegistry({
    hosts: (domain) => directHosts(domain, insecure),
    credentials: await dockerCredentials(io.env),
    signal: io.signal,
  })
  return {
    origin: name,
    top: async () => (await registry.manifest(reference)).bytes,
    document: async (digest) => (await registry.manifest({ ...reference, digest })).bytes,
    blob: (digest) => registry.blob(reference, digest),
  }
}

function folderSource(folder: string): ImageSource {
  const wrong = (why: string) => new UsageError(`folder "${folder}": ${why}`)
  if (!existsSync(join(folder, 'index.json'))) throw wrong('is no OCI image layout, it has no "index.json"')
  const place = (digest: string) => {
    const path = join(folder, 'blobs', 'sha256', hexOf(digest, wrong))
    if (!existsSync(path)) throw wrong(`blob "${digest}" is missing`)
    return path
  }
  return {
    origin: folder,
    top: () => small(join(folder, 'index.json'), wrong),
    document: async (digest) => verified(digest, await small(place(digest), wrong), wrong),
    blob: (digest) => checked(digest, createReadStream(place(digest)), wrong),
  }
}

async function archiveSource(path: string): Promise<ImageSource> {
  const wrong = (why: string) => new UsageError(`archive "${path}": ${why}`)
  const file = await open(path)
  try {
    const { size } = await file.stat()
    const places = await findTarPlaces(async (offset, length) => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset)
      return buffer.subarray(0, bytesRead)
    }, size)
    const byName = new Map(places.map((place) => [place.name, place]))
    const find = (name: string) => {
      const found = byName.get(name)
      if (!found) throw wrong(`"${name}" is missing, it is no OCI image layout`)
      return found
    }
    const bytesOf = (name: string): AsyncIterable<Uint8Array> => {
      const { offset, size: length } = find(name)
      return length === 0 ? none() : createReadStream(path, { start: offset, end: offset + length - 1 })
    }
    const whole = async (name: string) => {
      if (find(name).size > documentLimit) throw wrong(`"${name}" is too large for a manifest`)
      return Buffer.concat(await Array.fromAsync(bytesOf(name)))
    }
    const blobName = (digest: string) => `blobs/sha256/${hexOf(digest, wrong)}`
    return {
      origin: path,
      top: () => whole('index.json'),
      document: async (digest) => verified(digest, await whole(blobName(digest)), wrong),
      blob: (digest) => checked(digest, bytesOf(blobName(digest)), wrong),
    }
  } catch (error) {
    throw error instanceof TarError ? wrong(`${error.message}, name an OCI image archive`) : error
  } finally {
    await file.close()
  }
}

type Wrong = (why: string) => UsageError

async function* none(): AsyncGenerator<Uint8Array> {}

async function small(path: string, wrong: Wrong): Promise<Uint8Array> {
  if ((await stat(path)).size > documentLimit) throw wrong(`"${path}" is too large for a manifest`)
  return await readFile(path)
}

function hexOf(digest: string, wrong: Wrong): string {
  const hex = /^sha256:([0-9a-f]{64})$/.exec(digest)?.[1]
  if (!hex) throw wrong(`digest "${digest}" is not SHA-256`)
  return hex
}

function verified(digest: string, bytes: Uint8Array, wrong: Wrong): Uint8Array {
  if (`sha256:${createHash('sha256').update(bytes).digest('hex')}` !== digest) throw wrong(`blob "${digest}" is damaged`)
  return bytes
}

async function* checked(digest: string, chunks: AsyncIterable<unknown>, wrong: Wrong): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256')
  for await (const chunk of chunks) {
    hash.update(chunk as Uint8Array)
    yield chunk as Uint8Array
  }
  if (`sha256:${hash.digest('hex')}` !== digest) throw wrong(`blob "${digest}" is damaged`)
}

const indexDepth = 4

/** The layers of an image for an architecture, from the lowest to the top. Throws UsageError. */
export async function layersOf(source: ImageSource, arch: string): Promise<{ digest: string; mediaType: string }[]> {
  const manifest = await manifestFor(source, arch)
  if (!manifest) throw new UsageError(`image "${source.origin}": it has nothing for ${arch}`)
  return (manifest.layers ?? []).map(({ digest, mediaType }) => ({ digest, mediaType: mediaType ?? '' }))
}

/** Whether an image is for an architecture. Throws UsageError. */
export const isFor = async (source: ImageSource, arch: string): Promise<boolean> => (await manifestFor(source, arch)) !== undefined

/** The manifest of an image for an architecture; undefined when it is for others only. Throws UsageError. */
async function manifestFor(source: ImageSource, arch: string): Promise<ImageDocument | undefined> {
  const wrong = (why: string) => new UsageError(`image "${source.origin}": ${why}`)
  let bytes = await source.top()
  for (let depth = 0; depth <= indexDepth; depth++) {
    const document = parseImageDocument(Buffer.from(bytes).toString())
    if (!document) throw wrong('its manifest cannot be read')
    if (!document.manifests) return (await configured(source, document, arch)) ? document : undefined
    const fitting = document.manifests.find(({ platform }) => !platform || platform.architecture === arch)
    if (!fitting) return undefined
    bytes = await source.document(fitting.digest)
  }
  throw wrong('its indexes are nested too deeply')
}

/** Whether the configuration of an image names this architecture, or none. Throws UsageError. */
async function configured(source: ImageSource, { config }: ImageDocument, arch: string): Promise<boolean> {
  if (!config) return true
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of source.blob(config.digest)) {
    size += chunk.length
    if (size > documentLimit) throw new UsageError(`image "${source.origin}": its configuration is too large`)
    chunks.push(chunk)
  }
  const named = parseArchitecture(Buffer.concat(chunks).toString())
  return named === undefined || named === arch
}
