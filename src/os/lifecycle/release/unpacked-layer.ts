/**
 * Layers of installer images as registries usually hold them, compressed. Files are read at their offsets within a layer, so these are
 * unpacked once, into a file that is removed with the image.
 */
import { pipeline, Readable, type Transform } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { messageOf } from '../../../wire/error-message.ts'
import type { Kernel } from '../../kernel.ts'
import { roomFor, writeBounded } from './bounded-file.ts'
import { ReleaseError } from './release.ts'

/** The kernel interface used here. */
export type Unpacking = {
  readonly files: Pick<Kernel['files'], 'openWrite' | 'exists' | 'removeFile' | 'readText' | 'mkdirAll' | 'list' | 'move' | 'lstatIfThere'>
}

/** A compressed layer. */
export interface PackedLayer {
  /** Of the layer as it is stored: `sha256:` and 64 digits of hex. */
  readonly digest: string
  readonly compression: Compression
  readonly content: AsyncIterable<Uint8Array>
  /** Layers of the same image, which stay. */
  readonly image: readonly string[]
  readonly onDisk: boolean
}

type Compression = 'gzip' | 'zstd'

const folders = { disk: '/var/system/unpacked', memory: '/run/ichor/unpacked' } as const

/** How a layer of this media type is compressed (OCI image specification, layer.md; Docker image manifest V2). Throws ReleaseError. */
export function compressionOf(mediaType: string | null | undefined): Compression | undefined {
  const [, suffix = ''] = /\.tar(?:[+.](\w+))?$/.exec(mediaType ?? '.tar') ?? ['', 'other']
  if (suffix === '') return undefined
  if (suffix === 'gzip' || suffix === 'zstd') return suffix
  throw new ReleaseError(`a layer has the media type "${mediaType}": push the image with layers that are plain, gzip or zstd`)
}

/** Unpacks a layer, unless that was done already. Returns its file. Throws ReleaseError. */
export async function unpackLayer(kernel: Unpacking, layer: PackedLayer): Promise<{ path: string; size: number }> {
  const { files } = kernel
  const folder = layer.onDisk ? folders.disk : folders.memory
  const path = pathOf(folder, layer.digest)
  const there = files.lstatIfThere(path)
  if (there) return { path, size: there.size }
  files.mkdirAll(folder, { mode: 0o700 })
  const kept = new Set(layer.image.map((digest) => pathOf(folder, digest)))
  for (const name of files.list(folder)) if (!kept.has(`${folder}/${name}`)) files.removeFile(`${folder}/${name}`)
  const draft = `${folder}/.${Bun.randomUUIDv7()}`
  await writeBounded(kernel, draft, unpacked(layer), { room: roomFor(kernel, layer.onDisk), what: 'an unpacked layer' })
  files.move(draft, path)
  return { path, size: files.lstatIfThere(path)?.size ?? 0 }
}

/** Removes what was unpacked. */
export function forgetUnpacked({ files }: Unpacking): void {
  for (const folder of Object.values(folders))
    if (files.exists(folder)) for (const name of files.list(folder)) files.removeFile(`${folder}/${name}`)
}

const pathOf = (folder: string, digest: string) => `${folder}/${digest.replace('sha256:', '')}.tar`

async function* unpacked({ digest, compression, content }: PackedLayer): AsyncGenerator<Uint8Array> {
  const hash = new Bun.CryptoHasher('sha256')
  const hashed = async function* () {
    for await (const chunk of content) {
      hash.update(chunk)
      yield chunk
    }
  }
  const decoder: Transform = compression === 'gzip' ? createGunzip() : createZstdDecompress()
  pipeline(Readable.from(hashed(), { objectMode: false }), decoder, () => {}) // a failure of either ends the decoder with its error
  try {
    for await (const chunk of decoder) yield chunk as Uint8Array
  } catch (error) {
    throw new ReleaseError(`a layer is damaged, its ${compression} data cannot be unpacked: ${messageOf(error)}`)
  }
  if (`sha256:${hash.digest('hex')}` !== digest) throw new ReleaseError(`layer "${digest}" is damaged`)
}
