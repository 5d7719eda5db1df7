/**
 * An installer image in the OCI image layout. Its layers contain `/usr/install/<arch>/`. Nothing is unpacked: files are read at
 * their offsets within the layers.
 */
import { type ImageDocument, parseImageDocument } from '../../../oci/image-document.ts'
import { findTarPlaces } from '../../../wire/tar/read.ts'
import type { Kernel } from '../../kernel.ts'
import { ReleaseError, type ReleaseFiles } from './release.ts'

/** A range of a file. */
export interface Stretch {
  readonly path: string
  readonly offset: number
  readonly size: number
}

/** The kernel interface used here. */
export type Reading = { readonly files: Pick<Kernel['files'], 'openRead'> }

/** Access to the blobs of an image. */
export interface Blobs {
  readonly origin: string
  find(digest: string): Promise<Stretch | undefined>
}

const documentLimit = 4 << 20
const depthLimit = 4

/** The install files of the image described by `top` (manifest or index). */
export async function imageFiles(kernel: Reading, blobs: Blobs, top: string, arch: string): Promise<ReleaseFiles> {
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
  let manifest = await document(top)
  for (let depth = 0; manifest.manifests; depth++) {
    if (depth === depthLimit) throw wrong('its indexes are nested too deeply')
    const named = manifest.manifests.filter(({ platform }) => !platform || platform.architecture === arch)
    if (!named[0]) throw wrong(`it has nothing for ${arch}`)
    manifest = await document(named[0].digest)
  }
  const places = new Map<string, Stretch>()
  const folder = `usr/install/${arch}/`
  for (const { digest, mediaType } of manifest.layers ?? []) {
    if (/gzip|zstd/.test(mediaType ?? '')) throw wrong('its layers are compressed: push it with uncompressed layers, or send its archive')
    const layer = await locate(digest)
    const read = (offset: number, length: number) => readStretch(kernel, { path: layer.path, offset: layer.offset + offset, size: length })
    for (const { name, offset, size } of await findTarPlaces(read, layer.size).catch((error: Error) =>
      Promise.reject(wrong(error.message)),
    )) {
      if (name.startsWith(folder)) places.set(name.slice(folder.length), { path: layer.path, offset: layer.offset + offset, size })
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
  const top = topOf(Buffer.from(await readStretch(kernel, index)).toString())
  if (!top) throw wrong('its "index.json" lists no image')
  const find = async (digest: string) => byName.get(`blobs/${digest.replace(':', '/')}`)
  return imageFiles(kernel, { origin, find }, top, arch)
}

/** Reads the install files from a directory, as on a medium. */
export function folderFiles(kernel: { files: Pick<Kernel['files'], 'openRead' | 'lstatIfThere'> }, folder: string): ReleaseFiles {
  return {
    origin: `"${folder}"`,
    size: (name) => kernel.files.lstatIfThere(`${folder}/${name}`)?.size,
    open: (name) => chunks(kernel.files.openRead(`${folder}/${name}`)),
  }
}

const topOf = (index: string): string | undefined => parseImageDocument(index)?.manifests?.[0]?.digest

function openStretch({ files }: Reading, { path, offset, size }: Stretch): AsyncIterable<Uint8Array> {
  return size === 0 ? none() : chunks(files.openRead(path, { start: offset, end: offset + size - 1 }))
}

async function* none(): AsyncGenerator<Uint8Array> {}

async function* chunks(stream: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) yield chunk as Uint8Array
}

async function readStretch(kernel: Reading, place: Stretch): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  for await (const part of openStretch(kernel, place)) parts.push(part)
  return Buffer.concat(parts)
}
