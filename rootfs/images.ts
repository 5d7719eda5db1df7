/**
 * The container images that the root file system holds, made of its own files: a layer is a list of paths in the tree.
 * Layers are shared, so a node needs each of them once; their tars are never written, only hashed.
 */

import { createReadStream } from 'node:fs'
import type { ImageLayer, ImageRecord, ImageTable, LayerEntry } from '../src/oci/image.ts'
import { layerMediaType, layerSegments, layerSize, parentEntries } from '../src/oci/layer.ts'
import { contentSize, sourceOf, type Tree, type TreeEntry } from '../src/programs/factory/root/tree.ts'
import { pausePath } from './build/built-programs.ts'
import { hashOf } from './build/cache.ts'
import { releases } from './build/go-recipes.ts'
import type { KubernetesRelease } from './build/kubernetes.ts'
import { present } from './build/present.ts'
import { type Arch, libraryFolderOf, type Target, targets } from './build/target.ts'
import { certificateBundle } from './debian/parts.ts'

/** Where the table of images lies in the root file system. */
export const imageTablePath = '/usr/share/ichor/images.json'

/** Where each layer is laid out as a folder of hard links. */
export const layerFolder = '/usr/share/ichor/layers'

/** A layer: files of the tree by patterns (links are followed by one more pattern), and links of its own. */
interface LayerPlan {
  take?: string[]
  links?: Record<string, string>
  dirs?: Record<string, number>
  /** File of the tree at another path of the layer: path → path in the tree. */
  files?: Record<string, string>
}

/** An image: its layers from the bottom to the top, and how it is started. */
export interface ImagePlan {
  reference: string
  layers: LayerPlan[]
  entrypoint: string[]
  user?: string
  workingDir?: string
}

const baseOf = ({ merged }: Target): LayerPlan => ({
  take: [
    ...merged.map((name) => `/${name}`),
    '/etc/passwd',
    '/etc/group',
    '/etc/nsswitch.conf',
    '/etc/protocols',
    '/etc/services',
    certificateBundle,
  ],
  dirs: { tmp: 0o1777, run: 0o755, var: 0o755, etc: 0o755 },
})

const programs: LayerPlan = { take: ['/usr/bin/kube'] }

const filters = [
  'nft',
  'conntrack',
  'xtables-nft-multi',
  'ip*tables',
  'ip*tables-save',
  'ip*tables-restore',
  'ip*tables-nft',
  'ip*tables-nft-save',
]

/** Packet filters, with the libraries they need. */
const networkOf = (target: Target): LayerPlan => ({
  take: [
    ...[...filters, 'ip*tables-nft-restore'].map((name) => `/usr/sbin/${name}`),
    `${libraryFolderOf(target)}/xtables/*`,
    '/usr/bin/kmod',
    '/usr/sbin/modprobe',
  ],
})

/** What kubelet mounts, checks and makes volumes with. */
const disks: LayerPlan = {
  take: [
    ...['lsattr', 'mount', 'umount'].map((name) => `/usr/bin/${name}`),
    ...['mount.*', 'umount.*', 'losetup', 'blkid', 'fsck', 'fsck.*', 'mkfs.*', 'mke2fs', 'e2fsck', 'resize2fs'].map(
      (name) => `/usr/sbin/${name}`,
    ),
    ...['xfs_growfs', 'xfs_quota', 'xfs_repair'].map((name) => `/usr/sbin/${name}`),
    '/etc/mke2fs.conf',
  ],
}

/** Path in an image, from its root, to the multicall binary. */
function toKube(path: string): LayerPlan {
  const up = '../'.repeat(path.split('/').length - 1)
  return { links: { [path]: `${up}usr/bin/kube` } }
}

/** The layers that several images share, each one object: that is how a layer is made once. */
const shared: Readonly<Record<Arch, { base: LayerPlan; network: LayerPlan }>> = {
  amd64: { base: baseOf(targets.amd64), network: networkOf(targets.amd64) },
  arm64: { base: baseOf(targets.arm64), network: networkOf(targets.arm64) },
}

const component = (name: string, version: string, below: readonly LayerPlan[]): ImagePlan => ({
  reference: `registry.k8s.io/${name}:v${version}`,
  layers: [...below, toKube(`usr/local/bin/${name}`)],
  entrypoint: [`/usr/local/bin/${name}`],
})

/** The images that bear the version of Kubernetes. */
export function kubernetesImagePlans(version: string, { arch }: Target = targets.amd64): readonly ImagePlan[] {
  const { base, network } = shared[arch]
  return [
    component('kube-apiserver', version, [base, programs]),
    component('kube-controller-manager', version, [base, programs]),
    component('kube-scheduler', version, [base, programs]),
    component('kube-proxy', version, [base, programs, network]),
    {
      reference: `ghcr.io/siderolabs/kubelet:v${version}`,
      layers: [base, programs, network, disks, toKube('usr/local/bin/kubelet')],
      entrypoint: ['/usr/local/bin/kubelet'],
    },
  ]
}

/** Every image inside, by its reference. */
export function imagePlans({ version, coredns }: KubernetesRelease, target: Target = targets.amd64): readonly ImagePlan[] {
  const { base, network } = shared[target.arch]
  return [
    ...kubernetesImagePlans(version, target),
    {
      reference: `registry.k8s.io/etcd:v${releases.etcd}`,
      layers: [base, programs, toKube('usr/local/bin/etcd')],
      entrypoint: ['/usr/local/bin/etcd'],
    },
    {
      reference: `registry.k8s.io/coredns/coredns:v${coredns}`,
      layers: [base, programs, toKube('coredns')],
      entrypoint: ['/coredns'],
      workingDir: '/',
    },
    {
      reference: `ghcr.io/siderolabs/flannel:v${releases.flannel}`,
      layers: [base, programs, network, toKube('opt/bin/flanneld')],
      entrypoint: ['/opt/bin/flanneld'],
    },
    {
      reference: `registry.k8s.io/pause:${releases.pause}`,
      layers: [{ files: { pause: pausePath } }],
      entrypoint: ['/pause'],
      user: '65535:65535',
    },
  ]
}

/** The libraries of the tree that a program in it is linked to. */
type Libraries = (path: string) => string[]

/** Makes the table of images and lays the layers out in the tree as hard links. */
export async function addImages(tree: Tree, plans: readonly ImagePlan[], libraries: Libraries, arch: Arch = 'amd64'): Promise<ImageTable> {
  const table = await makeImages(tree, plans, libraries, arch)
  const byDigest = new Map(table.images.flatMap(({ layers }) => layers.map((layer) => [layer.digest, layer])))
  for (const layer of byDigest.values()) layOut(tree, layer)
  tree.text('images', imageTablePath, JSON.stringify(table))
  return table
}

/** The table of images made of files of the tree. */
export async function makeImages(tree: Tree, plans: readonly ImagePlan[], libraries: Libraries, arch: Arch = 'amd64'): Promise<ImageTable> {
  const made = new Map<LayerPlan, ImageLayer>()
  const images: ImageRecord[] = []
  for (const plan of plans) {
    const layers: ImageLayer[] = []
    for (const each of plan.layers) {
      const layer = made.get(each) ?? (await makeLayer(tree, each, libraries))
      made.set(each, layer)
      layers.push(layer)
    }
    images.push(makeImage(plan, layers, arch))
  }
  return { images }
}

async function makeLayer(tree: Tree, plan: LayerPlan, libraries: Libraries): Promise<ImageLayer> {
  const entries = new Map<string, LayerEntry>()
  const put = (entry: LayerEntry) => entries.set(entry.path, entry)
  const all = tree.entries()
  const take = (entry: TreeEntry, path = entry.path.slice(1)) => {
    const owner = { ...(entry.uid && { uid: entry.uid }), ...(entry.gid && { gid: entry.gid }) }
    if (entry.type === 'symlink') put({ path, type: 'symlink', mode: 0o777, ...owner, target: entry.target })
    else if (entry.type === 'dir') put({ path, type: 'dir', mode: entry.mode, ...owner })
    else put({ path, type: 'file', mode: entry.mode, ...owner, size: contentSize(entry), source: entry.path })
    if (entry.type !== 'file') return
    for (const library of libraries(entry.path)) {
      const found = tree.get(library)
      if (found && !entries.has(library.slice(1))) take(found)
    }
  }
  for (const pattern of plan.take ?? []) {
    const glob = new Bun.Glob(pattern)
    const found = all.filter((entry) => entry.path === pattern || glob.match(entry.path))
    if (!found.length) throw new Error(`image layer: nothing in the root file system matches "${pattern}"`)
    for (const entry of found) take(entry)
  }
  for (const [path, source] of Object.entries(plan.files ?? {})) {
    const entry = tree.get(source)
    if (!entry) throw new Error(`image layer: "${source}" is not in the root file system`)
    take(entry, path)
  }
  for (const [path, target] of Object.entries(plan.links ?? {})) put({ path, type: 'symlink', mode: 0o777, target })
  for (const [path, mode] of Object.entries(plan.dirs ?? {})) put({ path, type: 'dir', mode })
  for (const parent of parentEntries([...entries.keys()])) if (!entries.has(parent.path)) put(parent)
  const sorted = [...entries.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
  return { digest: await digestOf(tree, sorted), size: layerSize(sorted), entries: sorted }
}

async function digestOf(tree: Tree, entries: LayerEntry[]): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256')
  for await (const bytes of layerBytes(tree, entries)) hasher.update(bytes)
  return `sha256:${hasher.digest('hex')}`
}

/** The tar of a layer. */
export async function* layerBytes(tree: Tree, entries: readonly LayerEntry[]): AsyncGenerator<Uint8Array> {
  for (const segment of layerSegments(entries)) {
    if ('bytes' in segment) yield segment.bytes
    else {
      const entry = present(tree.get(segment.file), `"${segment.file}"`)
      if (entry.bytes) yield entry.bytes
      else yield* createReadStream(sourceOf(entry), { highWaterMark: 1 << 20 })
    }
  }
}

function makeImage(plan: ImagePlan, layers: ImageLayer[], arch: Arch): ImageRecord {
  const config = JSON.stringify({
    architecture: arch,
    os: 'linux',
    created: '1970-01-01T00:00:00Z',
    config: {
      ...(plan.user && { User: plan.user }),
      Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
      Entrypoint: plan.entrypoint,
      WorkingDir: plan.workingDir ?? '/',
    },
    rootfs: { type: 'layers', diff_ids: layers.map((layer) => layer.digest) },
    history: layers.map(() => ({ created: '1970-01-01T00:00:00Z', created_by: 'ichor' })),
  })
  const configDigest = `sha256:${hashOf(config)}`
  const mediaType = 'application/vnd.oci.image.manifest.v1+json'
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType,
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', digest: configDigest, size: Buffer.byteLength(config) },
    layers: layers.map(({ digest, size }) => ({ mediaType: layerMediaType, digest, size })),
  })
  return {
    reference: plan.reference,
    digest: `sha256:${hashOf(manifest)}`,
    mediaType,
    manifest,
    config: { digest: configDigest, size: Buffer.byteLength(config), text: config },
    layers,
  }
}

/** A layer as a folder: the same files under the layer's paths, so that it can be used where it lies. */
function layOut(tree: Tree, layer: ImageLayer): void {
  const root = `${layerFolder}/${layer.digest.slice('sha256:'.length)}`
  tree.dir('images', root)
  for (const entry of layer.entries) {
    const path = `${root}/${entry.path}`
    const owner = { uid: entry.uid, gid: entry.gid }
    if (entry.type === 'dir') tree.add({ path, type: 'dir', mode: entry.mode, ...owner, part: 'images' })
    else if (entry.type === 'symlink') tree.add({ path, type: 'symlink', mode: entry.mode, target: entry.target, ...owner, part: 'images' })
    else tree.add({ path, type: 'file', mode: entry.mode, linkTo: entry.source, ...owner, part: 'images' })
  }
}
