/** The images of a Talos release. Its extensions and overlays are named by files in two of them. */

import * as v from 'valibot'
import { parse } from 'yaml'
import { version } from '../../../../package.json'
import { parseReference, type Reference } from '../../../oci/reference.ts'
import type { RemoteRegistry } from '../../../oci/remote-registry.ts'
import { tarEntries } from '../../../wire/tar/read.ts'
import { layerTar } from '../archive/decompress.ts'
import { UsageError } from '../failure.ts'

const names = ['installer', 'installer-base', 'imager', 'talos', 'talosctl-all', 'overlays', 'extensions'] as const
/** The largest file that names images, and the largest manifest. */
const mostBytes = 4 << 20

/** The images of a release by their names. Throws UsageError for a tag that is no release of the field. */
export function bundleImages(tag = `v${version.split('.').slice(0, 2).join('.')}.0`): Record<(typeof names)[number], string> {
  checkTag(tag)
  return Object.fromEntries(names.map((name) => [name, `ghcr.io/siderolabs/${name}:${tag}`])) as Record<(typeof names)[number], string>
}

/** Releases from the first that has these images up to those of our API level. */
function checkTag(tag: string): void {
  const [, major, minor] = /^v(\d+)\.(\d+)\.\d+(?:-[0-9A-Za-z.-]+)?$/.exec(tag) ?? []
  const [, own = 0] = version.split('.').map(Number)
  if (major === undefined || minor === undefined) throw new UsageError(`tag "${tag}": write a release with its v, as in v1.${own}.0`)
  if (Number(major) !== 1 || Number(minor) < 11 || Number(minor) > own)
    throw new UsageError(`tag "${tag}": there are bundles of v1.11.0-alpha.0 and later, and this program knows those up to v1.${own}`)
}

/** The references in the file `image-digests` of the image with the extensions. */
export async function extensionImages(registry: RemoteRegistry, image: string): Promise<string[]> {
  const text = await fileOfImage(registry, parseReference(image), 'image-digests')
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

const Overlays = v.object({ overlays: v.array(v.object({ name: v.string(), image: v.string(), digest: v.string() })) })

/** The references in the file `overlays.yaml` of the image with the overlays. */
export async function overlayImages(registry: RemoteRegistry, image: string): Promise<string[]> {
  const text = await fileOfImage(registry, parseReference(image), 'overlays.yaml')
  const { overlays } = v.parse(Overlays, parse(text, { maxAliasCount: 0 }))
  return overlays.map((overlay) => `${overlay.image}@${overlay.digest}`)
}

const Descriptor = v.object({
  digest: v.string(),
  mediaType: v.optional(v.string(), ''),
  platform: v.optional(v.object({ architecture: v.string() })),
})
const Manifest = v.object({ manifests: v.optional(v.array(Descriptor)), layers: v.optional(v.array(Descriptor)) })

/** A small text file at the root of an image, from its last layer that has it. */
async function fileOfImage(registry: RemoteRegistry, reference: Reference, name: string): Promise<string> {
  const read = async (one: Reference) => v.parse(Manifest, JSON.parse(Buffer.from((await registry.manifest(one)).bytes).toString()))
  let manifest = await read(reference)
  const [first] = manifest.manifests ?? []
  const chosen = manifest.manifests?.find(({ platform }) => platform?.architecture === 'amd64') ?? first
  if (chosen) manifest = await read({ ...reference, digest: chosen.digest })
  for (const { digest, mediaType } of (manifest.layers ?? []).toReversed()) {
    const blob = registry.blob(reference, digest)
    for await (const entry of tarEntries(layerTar(blob, mediaType))) {
      if (entry.type !== 'file' || entry.name.replace(/^\.?\//, '') !== name) continue
      if (entry.size > mostBytes) throw new Error(`"${name}" of ${reference.repository} has ${entry.size} bytes, more than ${mostBytes}`)
      const chunks: Uint8Array[] = []
      for await (const chunk of entry.content) chunks.push(chunk)
      return Buffer.concat(chunks).toString()
    }
  }
  throw new Error(`image ${reference.repository} has no file "${name}"`)
}
