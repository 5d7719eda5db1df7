/** Container images that a boot medium carries, so that machines need no registry for them. */
import { createWriteStream, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { UsageError } from '../build/failure.ts'
import { imageEntries } from './container/image-entries.ts'

/** A file of the cache. */
export interface CacheFile {
  /** Within the cache. */
  readonly path: string
  readonly file: string
  readonly size: number
}

const ownFolders = /^(blob|manifests)\//

/**
 * The files of a cache, sorted: of a folder as `talosctl image cache-create --layout flat` makes it, or of an image that holds
 * them, which is unpacked into `work`. Throws UsageError and RegistryError.
 */
export async function imageCacheFiles(given: string, work: string, arch: string): Promise<CacheFile[]> {
  const isFlat = existsSync(join(given, 'manifests'))
  const folder = isFlat ? given : work
  if (!isFlat) await unpack(given, work, arch)
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => ({ path: relative(folder, file), file, size: statSync(file).size }))
    .filter(({ path }) => ownFolders.test(path))
  if (!files.some(({ path }) => path.startsWith('manifests/')))
    throw new UsageError(`--image-cache "${given}": it holds no images: make it with "talosctl image cache-create"`)
  return files.sort((a, b) => (a.path < b.path ? -1 : 1))
}

async function unpack(given: string, work: string, arch: string): Promise<void> {
  for await (const { name, type, content } of imageEntries(given, arch)) {
    const path = name.replace(/^(\.?\/)+/, '')
    if (type !== 'file' || !ownFolders.test(path)) continue
    if (path.split('/').includes('..')) throw new UsageError(`--image-cache "${given}": "${name}" leads out of the cache`)
    const file = join(work, path)
    mkdirSync(dirname(file), { recursive: true })
    await pipeline(Readable.from(content), createWriteStream(file))
  }
}
