import { layerTar } from '../../../src/programs/talosctl/archive/decompress.ts'
import { layersOf, openImage } from '../../../src/programs/talosctl/extension/image-source.ts'
import { tarEntries } from '../../../src/wire/tar/read.ts'

/** The entries of an image's layers, from the bottom to the top. Throws UsageError and RegistryError. */
export async function* imageEntries(image: string, arch: string): ReturnType<typeof tarEntries> {
  const { signal } = new AbortController()
  const source = await openImage(image, { io: { env: process.env, signal } })
  for (const { digest, mediaType } of await layersOf(source, arch)) yield* tarEntries(layerTar(source.blob(digest), mediaType))
}
