/** The system extensions that the image factory offers, from a folder of images or a list of them. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Logger } from '../../../../cosi/log.ts'
import { codeOf } from '../../../../wire/errno.ts'
import { messageOf } from '../../../../wire/error-message.ts'
import type { ExtensionMetadata, OfferedExtension } from '../../../factory/extensions.ts'
import { FactoryError } from '../../../factory/factory-error.ts'
import { type Architecture, architectures } from '../../../factory/releases.ts'
import { type ImageSource, isFor, openImage } from '../../extension/image-source.ts'
import { checkCompatibility, checkRange, ExtensionError } from '../../extension/manifest.ts'
import { unpackExtension } from '../../extension/unpack.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'

const longestList = 1 << 20
const mostImages = 1000

/**
 * Reads and checks the extensions, when the factory starts. One with faults is left out, each of them a line of the log. Throws
 * UsageError for a list that cannot be read, or that has two extensions of one name and version.
 */
export async function offeredExtensions(io: Pick<Io, 'env' | 'signal'>, list: string, log: Logger): Promise<OfferedExtension[]> {
  const found: OfferedExtension[] = []
  for (const ref of await imagesOf(list)) {
    try {
      found.push(await offeredExtension(io, ref))
    } catch (error) {
      if (io.signal.aborted) throw error
      for (const line of messageOf(error).split('\n')) log.error('extension left out', { reason: line })
    }
  }
  for (const { ref, metadata } of found) {
    const twin = found.find(
      (other) => other.ref !== ref && other.metadata.name === metadata.name && other.metadata.version === metadata.version,
    )
    if (twin)
      throw new UsageError(`--extensions: "${ref}" and "${twin.ref}" are both ${metadata.name} ${metadata.version}: remove one of them`)
  }
  return found.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
}

/** The archives and layouts in a folder, or the lines of a file. */
async function imagesOf(list: string): Promise<string[]> {
  try {
    const stats = await stat(list)
    if (stats.isDirectory()) {
      const names = (await readdir(list)).sort()
      return names.map((name) => join(list, name)).filter((path) => path.endsWith('.tar') || existsSync(join(path, 'index.json')))
    }
    if (stats.size > longestList) throw new UsageError(`--extensions "${list}" has ${stats.size} bytes, at most ${longestList} are read`)
    const lines = (await readFile(list, 'utf8')).split('\n').map((line) => line.trim())
    const images = lines.filter((line) => line !== '' && !line.startsWith('#'))
    if (images.length > mostImages)
      throw new UsageError(`--extensions "${list}" has ${images.length} images, at most ${mostImages} are read`)
    return images
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(`--extensions "${list}": ${codeOf(error)}: name a folder of images, or a file with one image each line`)
  }
}

async function offeredExtension(io: Pick<Io, 'env' | 'signal'>, ref: string): Promise<OfferedExtension> {
  const source = await openImage(ref, { io })
  const digest = digestOf(await source.top())
  const metadata = new Map<Architecture, ExtensionMetadata>()
  for (const arch of architectures) if (await isFor(source, arch)) metadata.set(arch, await checkedMetadata(source, arch))
  const [first] = metadata.values()
  if (!first) throw new UsageError(`extension "${ref}": it has nothing for ${architectures.join(' or ')}`)
  return {
    ...{ ref, digest, metadata: first },
    unfit({ version, arch }) {
      const own = metadata.get(arch)
      return own ? unfit(ref, own, version) : `extension "${ref}": it has nothing for ${arch}`
    },
    async unpack(to, arch) {
      const now = await openImage(ref, { io })
      if (digestOf(await now.top()) !== digest)
        throw new FactoryError(503, `extension "${first.name}" is another one than when the factory started: restart the factory`)
      return (await unpackExtension(now, { folder: to, arch })).entries
    },
  }
}

/** What the files of an extension for an architecture state, once they are checked. Throws ExtensionError and UsageError. */
async function checkedMetadata(source: ImageSource, arch: Architecture): Promise<ExtensionMetadata> {
  const folder = await mkdtemp(join(tmpdir(), 'ichor-extension-'))
  try {
    const { metadata } = await unpackExtension(source, { folder, arch })
    checkRange(source.origin, metadata)
    return metadata
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const digestOf = (bytes: Uint8Array) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

function unfit(ref: string, metadata: ExtensionMetadata, version: string): string | undefined {
  try {
    checkCompatibility(ref, metadata, version)
    return undefined
  } catch (error) {
    if (error instanceof ExtensionError) return error.message
    throw error
  }
}
