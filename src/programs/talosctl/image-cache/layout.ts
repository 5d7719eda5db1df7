/** Packs a cache into an OCI layout: one image whose single layer holds the files. */

import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { parentEntries } from '../../../oci/layer.ts'
import { type TarMember, writeTar } from '../../../wire/tar/write.ts'
import { fileMember } from '../archive/file-member.ts'
import { digestOf } from './fill.ts'

/** Writes the layout of the cache in `source` to `target`; its digest comes back. */
export async function packCache(source: string, target: string, platforms: readonly string[]): Promise<string> {
  const blobs = join(target, 'blobs', 'sha256')
  await mkdir(blobs, { recursive: true })
  const hash = createHash('sha256')
  let size = 0
  const part = join(blobs, 'layer.part')
  async function* counted() {
    for await (const chunk of tarOf(source)) {
      hash.update(chunk)
      size += chunk.length
      yield chunk
    }
  }
  await pipeline(Readable.from(counted()), createWriteStream(part))
  const hex = hash.digest('hex')
  await rename(part, join(blobs, hex))
  const layer = { mediaType: 'application/vnd.oci.image.layer.v1.tar', digest: `sha256:${hex}`, size }
  const put = async (mediaType: string, value: object) => {
    const bytes = Buffer.from(JSON.stringify(value))
    const digest = digestOf(bytes)
    await writeFile(join(blobs, digest.slice('sha256:'.length)), bytes)
    return { mediaType, digest, size: bytes.length }
  }
  const [os = 'linux', architecture = 'amd64'] = (platforms[0] ?? '').split('/')
  const rootfs = { type: 'layers', diff_ids: [layer.digest] }
  const config = await put('application/vnd.oci.image.config.v1+json', { architecture, os, config: {}, rootfs })
  const manifestType = 'application/vnd.oci.image.manifest.v1+json'
  const manifest = await put(manifestType, { schemaVersion: 2, mediaType: manifestType, config, layers: [layer] })
  await writeFile(join(target, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  await writeFile(join(target, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [manifest] }))
  await rm(join(target, '.cache'), { recursive: true, force: true })
  return manifest.digest
}

/** The files below a folder as a tar that is the same for the same files. */
async function* tarOf(folder: string): AsyncGenerator<Uint8Array> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => relative(folder, join(entry.parentPath, entry.name)))
  const parents = parentEntries(files).map(({ path, mode }): TarMember => ({ path, type: 'directory', mode }))
  yield* writeTar([...parents, ...files.sort().map((path) => fileMember(path, join(folder, path)))])
}
