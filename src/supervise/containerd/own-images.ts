/**
 * Provides images that are already on the machine as folders; nothing is fetched or unpacked. Each layer becomes a
 * committed snapshot whose folder is a bind mount of the layer's folder, or a copy of a small one. The manifest and the configuration are small
 * blobs. The result is an ordinary image, and all containers of all nodes of a machine share the page cache of the same
 * files.
 *
 * A snapshot persists over restarts of the machine, its bind mount does not: both are checked at each start.
 */

import type { Channel } from '../../rpc/client/channel.ts'
import type { containerd } from '../../rpc/messages.ts'
import { writeBlob } from './blobs.ts'
import { failedAs, unlessGone } from './client.ts'
import { chainOf, snapshotter } from './images.ts'

/** An image whose layers are folders; manifest and configuration are byte for byte what was hashed. */
export interface OwnImage {
  readonly name: string
  readonly digest: string
  readonly mediaType: string
  readonly manifest: string
  readonly config: { readonly digest: string; readonly text: string }
  readonly layers: readonly { readonly digest: string; readonly folder: string }[]
}

/** Makes the contents of one folder appear in another, unless they are there already. */
export type ShowFolder = (source: string, target: string) => Promise<void>

type Mount = containerd.types.Mount
const layerLabel = 'ichor/layer'
const collectRoot = { 'containerd.io/gc.root': 'ichor' }

/** Layers being provided or already provided, by chain id; shared by images of one namespace that are provided concurrently. */
export type Layers = Map<string, Promise<void>>

/** Registers the image in the channel's namespace and keeps whatever exists already. */
export async function provideImage(channel: Channel, image: OwnImage, show: ShowFolder, layers: Layers = new Map()): Promise<void> {
  const chain: string[] = []
  let ready: Promise<void> = Promise.resolve()
  for (const { digest, folder } of image.layers) {
    const parent = chain.length > 0 ? chainOf(chain) : ''
    chain.push(digest)
    const layer = { name: chainOf(chain), parent, digest, folder }
    const below = ready
    let provided = layers.get(layer.name)
    if (!provided) {
      provided = below.then(() => provideSnapshot(channel, layer, show))
      layers.set(layer.name, provided)
    }
    ready = provided
  }
  await ready
  const references = { [`containerd.io/gc.ref.snapshot.${snapshotter}`]: chainOf(chain), ...collectRoot }
  await writeBlob(channel, image.config.digest, Buffer.from(image.config.text), references)
  const content = { 'containerd.io/gc.ref.content.config': image.config.digest, ...collectRoot }
  await writeBlob(channel, image.digest, Buffer.from(image.manifest), content)
  await nameImage(channel, image)
}

interface Layer {
  readonly name: string
  readonly parent: string
  readonly digest: string
  readonly folder: string
}

async function provideSnapshot(channel: Channel, { name, parent, digest, folder }: Layer, show: ShowFolder): Promise<void> {
  const found = await unlessGone(channel.unary('containerd.services.snapshots.v1.Snapshots/Stat', { snapshotter, key: name }))
  // A snapshot that was unpacked from a registry needs no bind mount.
  if (found?.info && found.info.labels[layerLabel] === undefined) return
  if (found) return show(folder, await folderOf(channel, name))
  const key = `ichor ${name}`
  const labels = { [layerLabel]: digest.slice('sha256:'.length, 'sha256:'.length + 32), ...collectRoot }
  const prepare = () => channel.unary('containerd.services.snapshots.v1.Snapshots/Prepare', { snapshotter, key, parent, labels })
  const { mounts } = await prepare().catch(async (error) => {
    if (!failedAs(error, 'AlreadyExists')) throw error
    // Left behind by an interrupted start.
    await discard(channel, key)
    return prepare()
  })
  await show(folder, upperOf(mounts))
  await channel.unary('containerd.services.snapshots.v1.Snapshots/Commit', { snapshotter, name, key, labels })
}

/** The folder with a committed snapshot's own files: the topmost lower directory of a snapshot on top of it. */
async function folderOf(channel: Channel, name: string): Promise<string> {
  const key = `ichor look ${name}`
  await discard(channel, key)
  const { mounts } = await channel.unary('containerd.services.snapshots.v1.Snapshots/Prepare', { snapshotter, key, parent: name })
  await discard(channel, key)
  const lower = optionOf(mounts, 'lowerdir')?.split(':')[0]
  if (!lower) throw new Error(`snapshot "${name}" has no folder of its own`)
  return lower
}

function upperOf(mounts: readonly Mount[]): string {
  const upper = optionOf(mounts, 'upperdir') ?? (mounts[0]?.type === 'bind' ? mounts[0].source : undefined)
  if (!upper) throw new Error('a new snapshot has no folder of its own')
  return upper
}

function optionOf(mounts: readonly Mount[], option: string): string | undefined {
  return mounts[0]?.options.find((text) => text.startsWith(`${option}=`))?.slice(option.length + 1)
}

async function discard(channel: Channel, key: string): Promise<void> {
  await unlessGone(channel.unary('containerd.services.snapshots.v1.Snapshots/Remove', { snapshotter, key }))
}

/** Creates or updates the image record. An update without a change still notifies the CRI plugin, which may have dropped the image. */
async function nameImage(channel: Channel, { name, digest, mediaType, manifest }: OwnImage): Promise<void> {
  const target = { mediaType, digest, size: Buffer.byteLength(manifest) }
  // The kubelet frees no space by removing this image, so it is pinned.
  const image = { name, target, labels: { 'io.cri-containerd.pinned': 'pinned' } }
  try {
    await channel.unary('containerd.services.images.v1.Images/Create', { image })
  } catch (error) {
    if (!failedAs(error, 'AlreadyExists')) throw error
    await channel.unary('containerd.services.images.v1.Images/Update', { image })
  }
}
