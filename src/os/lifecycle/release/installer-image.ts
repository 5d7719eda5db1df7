/**
 * An installer image in the OCI image layout. Its layers contain `/usr/install/<arch>/`. Files are read at their offsets within the
 * layers; only compressed layers are unpacked.
 */
import { type ImageDocument, parseImageDocument } from '../../../oci/image-document.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { findTarPlaces } from '../../../wire/tar/read.ts'
import type { Kernel } from '../../kernel.ts'
import { ReleaseError, type ReleaseFiles } from './release.ts'
import { compressionOf, type Unpacking, unpackLayer } from './unpacked-layer.ts'

/** A range of a file. */
export interface Stretch {
  readonly path: string
  readonly offset: number
  readonly size: number
}

/** The kernel interface used here. */
export type Reading = { readonly files: Pick<Kernel['files'], 'openRead'> & Unpacking['files'] }

/** Access to the blobs of an image. */
export interface Blobs {
  readonly origin: string
  /** Whether they are on a disk, so that layers are unpacked there and not in memory. */
  readonly onDisk: boolean
  find(digest: string): Promise<Stretch | undefined>
}

const documentLimit = 4 << 20
const depthLimit = 4
const readLimit = 100

/**
 * The install files of an image: that of the first manifest for this architecture below `top`, which is an index or the digest of a
 * manifest or index. Throws ReleaseError.
 */
export async function imageFiles(kernel: Reading, blobs: Blobs, top: ImageDocument | string, arch: string): Promise<ReleaseFiles> {
  const wrong = (why: string) => new ReleaseError(`image from ${blobs.origin}: ${why}; nothing was changed`)
  const locate = async (digest: string) => {
    if (!/^sha256:[0-9a-f]{64}$/.test(digest)) throw wrong('a digest is not SHA-256')
    const found = await blobs.find(digest)
    if (!found) throw wrong(`blob "${digest}" is missing, the transfer was incomplete`)
    return found
  }
  const document = async (digest: string): Promise<ImageDocument> => {
    const place = await locate(digest)
    if (place.size > documentLimit) throw wrong(`blob "${digest}" is too large for a manifest`)
    const bytes = await readStretch(kernel, place)
    if (`sha256:${new Bun.CryptoHasher('sha256').update(bytes).digest('hex')}` !== digest) throw wrong(`blob "${digest}" is damaged`)
    const read = parseImageDocument(Buffer.from(bytes).toString())
    if (!read) throw wrong(`blob "${digest}" is not an image manifest`)
    return read
  }
  const manifest = await manifestFor(arch, typeof top === 'string' ? await document(top) : top, { document, wrong })
  const layers = manifest.layers ?? []
  const image = layers.map(({ digest }) => digest)
  const places = new Map<string, Stretch>()
  for (const { digest, mediaType } of layers) {
    const stored = await locate(digest)
    try {
      const compression = compressionOf(mediaType)
      const content = openStretch(kernel, stored)
      const layer = compression && { digest, compression, content, image, onDisk: blobs.onDisk }
      await addLayer(kernel, places, layer ? { ...(await unpackLayer(kernel, layer)), offset: 0 } : stored, `usr/install/${arch}/`)
    } catch (error) {
      throw wrong(messageOf(error))
    }
  }
  return {
    origin: blobs.origin,
    size: (name) => places.get(name)?.size,
    open(name) {
      const place = places.get(name)
      if (!place) throw wrong(`"${name}" is missing`)
      return openStretch(kernel, place)
    },
  }
}

/** Adds the files of a layer below a folder to those of the layers under it, and removes what it hides (OCI image specification, layer.md). */
async function addLayer(kernel: Reading, places: Map<string, Stretch>, { path, offset: start, size: length }: Stretch, folder: string) {
  const read = (offset: number, size: number) => readStretch(kernel, { path, offset: start + offset, size })
  const entries = await findTarPlaces(read, length)
  for (const { name } of entries) {
    const [, parent = '', hidden] = /^(.*\/|)\.wh\.([^/]+)$/.exec(name) ?? []
    if (hidden === undefined) continue
    const gone = hidden === '.wh..opq' ? parent : `${parent}${hidden}`
    for (const each of [...places.keys()]) {
      const full = `${folder}${each}`
      if (full === gone || full.startsWith(gone.endsWith('/') ? gone : `${gone}/`)) places.delete(each)
    }
  }
  for (const { name, offset, size } of entries)
    if (name.startsWith(folder)) places.set(name.slice(folder.length), { path, offset: start + offset, size })
}

/** The first manifest for an architecture, looked for in the order of the indexes. */
async function manifestFor(
  arch: string,
  top: ImageDocument,
  { document, wrong }: { document: (digest: string) => Promise<ImageDocument>; wrong: (why: string) => ReleaseError },
): Promise<ImageDocument> {
  let reads = 0
  const search = async (index: ImageDocument, depth: number): Promise<ImageDocument | undefined> => {
    if (!index.manifests) return index
    if (depth === depthLimit) throw wrong('its indexes are nested too deeply')
    for (const { digest, platform } of index.manifests) {
      if (platform && (platform.architecture !== arch || (platform.os ?? 'linux') !== 'linux')) continue
      if (++reads > readLimit) throw wrong(`it names more than ${readLimit} images for ${arch}`)
      const found = await search(await document(digest), depth + 1)
      if (found) return found
    }
    return undefined
  }
  const found = await search(top, 0)
  if (!found) throw wrong(`it has nothing for ${arch}`)
  return found
}

/** Reads an image from a tar archive of the OCI image layout. */
export async function archiveFiles(kernel: Reading, path: string, size: number, origin: string, arch: string): Promise<ReleaseFiles> {
  const wrong = (why: string) => new ReleaseError(`image from ${origin}: ${why}; nothing was changed`)
  const read = (offset: number, length: number) => readStretch(kernel, { path, offset, size: length })
  const places = await findTarPlaces(read, size).catch((error: Error) =>
    Promise.reject(wrong(`${error.message}, the transfer was incomplete`)),
  )
  const byName = new Map(places.map(({ name, offset, size }) => [name, { path, offset, size }]))
  const index = byName.get('index.json')
  if (!index || index.size > documentLimit) throw wrong('it is not an OCI image layout archive: "index.json" is missing')
  const top = parseImageDocument(Buffer.from(await readStretch(kernel, index)).toString())
  if (!top?.manifests?.[0]) throw wrong('its "index.json" lists no image')
  const find = async (digest: string) => byName.get(`blobs/${digest.replace(':', '/')}`)
  return imageFiles(kernel, { origin, onDisk: path.startsWith('/var/'), find }, top, arch)
}

/** Reads the install files from a directory, as on a medium. */
export function folderFiles(kernel: { files: Pick<Kernel['files'], 'openRead' | 'lstatIfThere'> }, folder: string): ReleaseFiles {
  return {
    origin: `"${folder}"`,
    size: (name) => kernel.files.lstatIfThere(`${folder}/${name}`)?.size,
    open: (name) => chunks(() => kernel.files.openRead(`${folder}/${name}`)),
  }
}

function openStretch({ files }: Reading, { path, offset, size }: Stretch): AsyncIterable<Uint8Array> {
  return size === 0 ? none() : chunks(() => files.openRead(path, { start: offset, end: offset + size - 1 }))
}

async function* none(): AsyncGenerator<Uint8Array> {}

/** The file is opened when it is read: one that is never read would stay open, and its file system in use. */
async function* chunks(open: () => AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const chunk of open()) yield chunk as Uint8Array
}

async function readStretch(kernel: Reading, place: Stretch): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  for await (const part of openStretch(kernel, place)) parts.push(part)
  return Buffer.concat(parts)
}
