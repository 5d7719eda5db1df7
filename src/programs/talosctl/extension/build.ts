/** Builds the image of a system extension from a folder and from Debian packages. */

import { createReadStream, existsSync } from 'node:fs'
import { lstat, mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import type { LayerEntry } from '../../../oci/image.ts'
import { layerSegments, parentEntries } from '../../../oci/layer.ts'
import { spdxDocument } from '../../../oci/spdx.ts'
import type { ExtensionMetadata } from '../../factory/extensions.ts'
import { gzippedLayer, writeImageArchive } from '../archive/image-archive.ts'
import { UsageError } from '../failure.ts'
import { checkContent, type ExtensionEntry } from './content.ts'
import { openPackage } from './debian-package.ts'
import { ExtensionFiles, type SourceEntry } from './files.ts'
import { checkRange, parseExtensionManifest } from './manifest.ts'
import { checkServices } from './services.ts'

/** What an extension is built from. */
export interface BuildOptions {
  /** Has `manifest.yaml`, `rootfs/`, or both. */
  readonly folder?: string | undefined
  /** Metadata in place of what the manifest of the folder has. */
  readonly metadata: Partial<Record<'name' | 'version' | 'author' | 'description' | 'release', string>>
  /** Debian packages, which become the root of the extension's service. */
  readonly packages: readonly string[]
  /** The specification of the service. */
  readonly service?: string | undefined
  readonly arch: string
  /** The archive that is written. */
  readonly output: string
}

/** Where the root of an extension's service lies, and its specification. */
const serviceRoot = (name: string): string => `rootfs/usr/local/lib/containers/${name}`
const servicePath = (name: string): string => `rootfs/usr/local/etc/containers/${name}.yaml`

/** Writes the image as an OCI archive; equal sources give equal bytes. Throws ExtensionError and UsageError. */
export async function buildExtension(options: BuildOptions): Promise<ExtensionMetadata> {
  const { folder, packages, service, arch, output } = options
  const manifest = await manifestOf(options)
  const metadata = parseExtensionManifest(folder ?? output, Buffer.from(manifest))
  const { name } = metadata
  checkRange(name, metadata)
  const work = await mkdtemp(join(tmpdir(), 'ichor-extension-'))
  try {
    const files = new ExtensionFiles(name, work)
    await files.add(textEntry('manifest.yaml', manifest))
    await files.add(folderEntry('rootfs'))
    if (folder && existsSync(join(folder, 'rootfs')))
      for await (const entry of walk(join(folder, 'rootfs'), 'rootfs')) await files.add(entry)
    const contains = []
    for (const path of packages) {
      const { part, entries } = await openPackage(path)
      contains.push(part)
      for await (const entry of entries()) {
        const below = (path: string) => `${serviceRoot(name)}/${path.replace(/^(\.?\/)+/, '')}`
        const target = entry.type === 'hardlink' ? below(entry.target) : entry.target
        await files.add({ name: below(entry.name), type: entry.type, mode: entry.mode, size: entry.size, target, content: entry.content })
      }
    }
    if (service !== undefined) await files.add(textEntry(servicePath(name), await readFile(service, 'utf8')))
    const source = { name, version: metadata.version, source: 'a system extension', ...(contains.length > 0 && { contains }) }
    const sbom = spdxDocument(source, '1970-01-01T00:00:00Z')
    await files.add(textEntry(`rootfs/usr/local/share/spdx/${name}.spdx.json`, `${JSON.stringify(sbom, null, 1)}\n`))
    const { entries } = files.result()
    checkContent(name, entries)
    checkServices(name, entries)
    const manifestFile = join(work, 'manifest.yaml')
    await Bun.write(manifestFile, manifest)
    const ofManifest: LayerEntry = {
      path: 'manifest.yaml',
      type: 'file',
      mode: 0o644,
      size: Buffer.byteLength(manifest),
      source: manifestFile,
    }
    await writeImage(output, { work, arch, metadata, entries: [ofManifest, ...layerEntries(entries)] })
    return metadata
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** The entries below `rootfs`, with the folders above them. */
function layerEntries(entries: readonly ExtensionEntry[]): LayerEntry[] {
  const named = entries.map(({ path, type, mode, size, source, target }): LayerEntry => {
    const entry = { path: `rootfs${path}`, mode, size, ...(source !== undefined && { source }), target }
    return { ...entry, type: type === 'dir' || type === 'symlink' ? type : 'file' }
  })
  const known = new Set(named.map(({ path }) => path))
  const parents = parentEntries([...known]).filter(({ path }) => !known.has(path))
  return [...parents, ...named].sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)))
}

interface Built {
  work: string
  arch: string
  metadata: ExtensionMetadata
  entries: readonly LayerEntry[]
}

async function writeImage(output: string, { work, arch, metadata, entries }: Built): Promise<void> {
  const annotations = {
    'org.opencontainers.image.title': metadata.name,
    'org.opencontainers.image.version': metadata.version,
    'org.opencontainers.image.description': metadata.description,
  }
  await writeImageArchive(output, {
    arch,
    layers: [await gzippedLayer(join(work, 'layer.tar.gz'), layerSegments(entries), 9)],
    config: { created: '1970-01-01T00:00:00Z', config: {} },
    annotations,
    name: { repository: metadata.name, tag: metadata.version.replaceAll(/[^\w.-]/g, '-') },
  })
}

/** The text of the manifest: that of the folder, with what flags say in place of it. */
async function manifestOf({ folder, metadata }: BuildOptions): Promise<string> {
  const path = folder && join(folder, 'manifest.yaml')
  if (path && existsSync(path)) {
    const given = Object.entries(metadata).find(([, value]) => value !== undefined)
    if (given) throw new UsageError(`folder "${folder}" has a "manifest.yaml": write ${given[0]} "${given[1]}" there, or remove the file`)
    return await readFile(path, 'utf8')
  }
  const { name, version, author = '', description = '', release = '' } = metadata
  if (!name || !version)
    throw new UsageError(
      `${folder ? `folder "${folder}" has no "manifest.yaml"` : 'there is no folder with a "manifest.yaml"'}: give --name and --version`,
    )
  return stringify({
    version: 'v1alpha1',
    metadata: { name, version, author, description, compatibility: { talos: { version: release } } },
  })
}

const none = async function* (): AsyncGenerator<Uint8Array> {}

const folderEntry = (name: string, mode = 0o755): SourceEntry => ({ name, type: 'directory', mode, size: 0, target: '', content: none() })

function textEntry(name: string, text: string): SourceEntry {
  const bytes = Buffer.from(text)
  const content = async function* () {
    yield bytes
  }
  return { name, type: 'file', mode: 0o644, size: bytes.length, target: '', content: content() }
}

/** What is below a folder, sorted, with names below `name`. */
async function* walk(folder: string, name: string): AsyncGenerator<SourceEntry> {
  for (const each of (await readdir(folder)).sort()) {
    const path = join(folder, each)
    const entry = { name: `${name}/${each}`, target: '', content: none() }
    const stat = await lstat(path)
    const mode = stat.mode & 0o7777
    if (stat.isDirectory()) {
      yield { ...entry, type: 'directory', mode, size: 0 }
      yield* walk(path, entry.name)
    } else if (stat.isSymbolicLink()) yield { ...entry, type: 'symlink', mode, size: 0, target: await readlink(path) }
    else if (!stat.isFile()) yield { ...entry, type: 'other', mode, size: 0 }
    else yield { ...entry, type: 'file', mode, size: stat.size, content: stat.size > 0 ? createReadStream(path) : none() }
  }
}
