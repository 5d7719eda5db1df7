/** Reads the image of a system extension: `manifest.yaml`, and the files below `rootfs/`. */

import { mkdir } from 'node:fs/promises'
import { tarEntries } from '../../../wire/tar/read.ts'
import type { ExtensionMetadata } from '../../factory/extensions.ts'
import { layerTar } from '../archive/decompress.ts'
import { checkContent, type ExtensionEntry } from './content.ts'
import { ExtensionFiles } from './files.ts'
import { type ImageSource, layersOf } from './image-source.ts'
import { checkCompatibility, parseExtensionManifest } from './manifest.ts'
import { checkServices } from './services.ts'

/** A system extension whose files are on this computer. */
export interface Extension {
  readonly origin: string
  readonly metadata: ExtensionMetadata
  /** Sorted by path, folders before what is in them. */
  readonly entries: readonly ExtensionEntry[]
}

/** How an extension is read and what it is held against. */
export interface UnpackOptions {
  /** Where the contents of files go; they are named by number. */
  readonly folder: string
  readonly arch: string
  /** The release it is for; undefined to leave its compatibility unchecked. */
  readonly release?: string | undefined
}

/** Unpacks an extension and checks it. Throws ExtensionError, UsageError and RegistryError. */
export async function unpackExtension(source: ImageSource, { folder, arch, release }: UnpackOptions): Promise<Extension> {
  await mkdir(folder, { recursive: true })
  const image = new ExtensionFiles(source.origin, folder)
  for (const { digest, mediaType } of await layersOf(source, arch)) {
    image.beginLayer()
    for await (const entry of tarEntries(layerTar(source.blob(digest), mediaType))) await image.add(entry)
  }
  const { manifest, entries } = image.result()
  const metadata = parseExtensionManifest(source.origin, manifest)
  if (release !== undefined) checkCompatibility(source.origin, metadata, release)
  checkContent(source.origin, entries)
  checkServices(source.origin, entries)
  return { origin: source.origin, metadata, entries }
}
