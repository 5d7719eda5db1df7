/** Looks up, pulls and removes images in one namespace of containerd. References are in full form (`docker.io/library/x:tag`). */

import { createHash } from 'node:crypto'
import { packAny, unpackAny } from '../../rpc/client/any.ts'
import type { Channel } from '../../rpc/client/channel.ts'
import { containerd as enums } from '../../rpc/enums.ts'
import type { containerd } from '../../rpc/messages.ts'
import { readJson } from './blobs.ts'
import { unlessGone } from './client.ts'
import { openStream } from './stream.ts'

/** The snapshotter of every root file system. */
export const snapshotter = 'overlayfs'

/** What a container takes from its image. */
export interface ImageContents {
  readonly reference: string
  readonly digest: string
  /** Name of the topmost snapshot. */
  readonly chainId: string
  readonly env: readonly string[]
  readonly entrypoint: readonly string[]
  readonly cmd: readonly string[]
  readonly workingDir: string
  /** Total size in bytes of manifest, configuration and layers, as transferred. */
  readonly size: number
}

/** Looks up credentials for the host name of a registry. */
export type Credentials = (host: string) => { username: string; password: string } | undefined

/** Progress of one part of a pull. */
export interface PullProgress {
  /** The event of containerd: `waiting`, `downloading`, `extracting`, `complete`, `exists`, … */
  readonly event: string
  readonly name: string
  readonly offset: number
  readonly total: number
}

type Descriptor = { mediaType: string; digest: string; size: number; platform?: { os: string; architecture: string } }
type Index = { manifests?: Descriptor[] }
type Manifest = { config: Descriptor; layers: Descriptor[] }
type Config = { config?: { Env?: string[]; Entrypoint?: string[]; Cmd?: string[]; WorkingDir?: string }; rootfs: { diff_ids: string[] } }

/** OCI names processor architectures as Go does. */
export const architecture = process.arch === 'x64' ? 'amd64' : process.arch

/** The digest of a reference in this namespace, unpacked or not. */
export async function imageDigest(channel: Channel, reference: string): Promise<string | undefined> {
  const found = await unlessGone(channel.unary('containerd.services.images.v1.Images/Get', { name: reference }))
  return found?.image?.target?.digest
}

/** The image, if containerd has it unpacked in this namespace. */
export async function imageContents(channel: Channel, reference: string): Promise<ImageContents | undefined> {
  const found = await unlessGone(channel.unary('containerd.services.images.v1.Images/Get', { name: reference }))
  const target = found?.image?.target
  if (!target) return undefined
  return unlessGone(contentsOf(channel, reference, target))
}

async function contentsOf(channel: Channel, reference: string, target: containerd.types.Descriptor): Promise<ImageContents> {
  const top = await readJson<Index & Manifest>(channel, target.digest)
  const chosen = top.manifests ? chooseManifest(reference, top.manifests) : undefined
  const manifest = chosen ? await readJson<Manifest>(channel, chosen.digest) : top
  const { config = {}, rootfs } = await readJson<Config>(channel, manifest.config.digest)
  const chainId = chainOf(rootfs.diff_ids)
  await channel.unary('containerd.services.snapshots.v1.Snapshots/Stat', { snapshotter, key: chainId })
  const sizes = [target.size, chosen?.size ?? 0, manifest.config.size, ...manifest.layers.map(({ size }) => size)]
  return {
    reference,
    digest: target.digest,
    chainId,
    env: config.Env ?? [],
    entrypoint: config.Entrypoint ?? [],
    cmd: config.Cmd ?? [],
    workingDir: config.WorkingDir || '/',
    size: sizes.reduce((sum, size) => sum + size, 0),
  }
}

function chooseManifest(reference: string, manifests: readonly Descriptor[]): Descriptor {
  const found = manifests.find(({ platform }) => platform?.os === 'linux' && platform.architecture === architecture)
  if (!found) throw new Error(`image "${reference}" has no manifest for linux/${architecture}`)
  return found
}

/** The name of the snapshot that a list of layers adds up to (OCI image specification, "Layer ChainID"). */
export function chainOf(diffIds: readonly string[]): string {
  return diffIds.reduce((chain, id) => (chain ? `sha256:${createHash('sha256').update(`${chain} ${id}`).digest('hex')}` : id), '')
}

/** Options of a pull. */
export interface PullOptions {
  /** Folder with a `<host>/hosts.toml` for each registry. */
  hostsDir: string
  credentials?: Credentials | undefined
  progress?: (progress: PullProgress) => void
  labels?: Record<string, string>
  /** Whether to unpack a root file system, which containers need. Without it only the blobs are stored. Default: true. */
  unpack?: boolean
  signal?: AbortSignal
}

/** Pulls an image, from mirrors first, and unpacks it unless `unpack` is false. */
export async function pullImage(channel: Channel, reference: string, options: PullOptions): Promise<void> {
  const { hostsDir, credentials, progress, labels = {}, unpack = true, signal } = options
  const auth = credentials && (await openStream(channel, 'auth', (message) => answerAuth(message, credentials)))
  const progressStream =
    progress &&
    (await openStream(channel, 'progress', (message) => {
      reportProgress(message, progress)
      return undefined
    }))
  try {
    const platform = { os: 'linux', architecture }
    const resolver = { hostDir: hostsDir, authStream: auth?.id ?? '' }
    await channel.unary(
      'containerd.services.transfer.v1.Transfer/Transfer',
      {
        source: packAny('containerd.types.transfer.OCIRegistry', { reference, resolver }),
        destination: packAny('containerd.types.transfer.ImageStore', {
          name: reference,
          labels,
          platforms: [platform],
          ...(unpack && { unpacks: [{ platform, snapshotter }] }),
        }),
        options: { progressStream: progressStream?.id ?? '' },
      },
      { deadline: 15 * 60_000, signal },
    )
  } finally {
    auth?.close()
    progressStream?.close()
  }
}

function reportProgress(message: Parameters<typeof unpackAny>[1], report: (progress: PullProgress) => void): void {
  const found = unpackAny<containerd.types.transfer.Progress>('containerd.types.transfer.Progress', message)
  if (found) report({ event: found.event, name: found.name, offset: found.progress, total: found.total })
}

function answerAuth(message: Parameters<typeof unpackAny>[1], credentials: Credentials): ReturnType<typeof packAny> {
  const request = unpackAny<containerd.types.transfer.AuthRequest>('containerd.types.transfer.AuthRequest', message)
  const known = request && credentials(request.host)
  const { NONE, CREDENTIALS } = enums.types.transfer.AuthType
  return packAny(
    'containerd.types.transfer.AuthResponse',
    known ? { authType: CREDENTIALS, username: known.username, secret: known.password } : { authType: NONE },
  )
}

/** An image as listed. */
export interface ListedImage {
  readonly name: string
  readonly digest: string
  readonly size: number
  readonly created: { seconds: number; nanos: number }
  readonly labels: Record<string, string>
}

/** All images of a namespace, sorted by name; the size is 0 where blobs are missing. */
export async function listImages(channel: Channel): Promise<ListedImage[]> {
  const { images } = await channel.unary('containerd.services.images.v1.Images/List', {})
  const listed = images.map(async ({ name, target, createdAt, labels }): Promise<ListedImage> => {
    const contents = target && (await contentsOf(channel, name, target).catch(() => undefined))
    return { name, digest: target?.digest ?? '', size: contents?.size ?? 0, created: createdAt ?? { seconds: 0, nanos: 0 }, labels }
  })
  return (await Promise.all(listed)).sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Removes an image; containerd collects the blobs that only it referenced. Throws RpcError NotFound when there is none. */
export async function removeImage(channel: Channel, reference: string): Promise<void> {
  await channel.unary('containerd.services.images.v1.Images/Delete', { name: reference, sync: true }, { deadline: 60_000 })
}
