/**
 * `bun run build:rootfs`: builds every part that is not in the cache and packs the root file system twice:
 * `dist/rootfs.sqsh`, which is shipped, and `dist/rootfs.node.sqsh`, the same tree for container nodes on this machine.
 * `--fast` packs only the second; `--lock` writes debian.lock anew from what the archive offers;
 * `--binary=<file>` packs that binary instead of building one.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../package.json'
import { addBase, addBinary } from './build/base.ts'
import { buildBinary, dist, linkTo } from './build/binary.ts'
import { cacheFolder, hashFile } from './build/cache.ts'
import { failed } from './build/failure.ts'
import { buildGo } from './build/go.ts'
import { cni, cniPlugins, containerd, kube, kubectl, runc } from './build/go-recipes.ts'
import { prepareHost } from './build/host.ts'
import { buildPause } from './build/pause.ts'
import { formatSize, formatTime, task } from './build/progress.ts'
import { sizeTable } from './build/size-table.ts'
import { Tree, type TreeEntry } from './build/tree.ts'
import { addDebianFiles, librariesOf } from './debian/files.ts'
import { formatLock, parseLock } from './debian/lock.ts'
import { addImages } from './images.ts'
import { BlockPress } from './squashfs/blocks.ts'
import { xz, zstd } from './squashfs/compressor.ts'
import { writeSquashfs } from './squashfs/writer.ts'

const blocks = join(cacheFolder, 'blocks')
const lockPath = join(import.meta.dir, 'debian.lock')

/** What is shipped: as small as it gets. */
const shippedImage = 'rootfs.sqsh'
const shippedBlocks = 1 << 20

/** The same tree for container nodes on this machine, where reading fast matters more than size. */
const nodeImage = 'rootfs.node.sqsh'
const nodeBlocks = 128 * 1024
const nodeLevel = 6

async function build(): Promise<void> {
  const started = performance.now()
  const fast = process.argv.includes('--fast')
  const relock = process.argv.includes('--lock')
  await prepareHost()
  const given = process.argv.find((each) => each.startsWith('--binary='))?.slice('--binary='.length)
  const binary = given ? { path: given } : await buildBinary()
  const parts = {
    kube: await buildGo(kube),
    kubectl: await buildGo(kubectl),
    containerd: await buildGo(containerd),
    runc: await buildGo(runc),
    cni: await buildGo(cni),
    pause: await buildPause(),
  }

  const tree = new Tree()
  addBase(tree, packageJson.version)
  addBinary(tree, binary.path)
  tree.file('kube', '/usr/bin/kube', join(parts.kube.folder, 'kube'), 0o755)
  for (const name of kubeNames) tree.link('kube', `/usr/bin/${name}`, 'kube')
  tree.file('containerd', '/usr/bin/containerd', join(parts.containerd.folder, 'containerd'), 0o755)
  tree.add({ path: '/usr/bin/containerd-shim-runc-v2', type: 'file', mode: 0o755, linkTo: '/usr/bin/containerd', part: 'containerd' })
  tree.file('runc', '/usr/bin/runc', join(parts.runc.folder, 'runc'), 0o755)
  tree.file('cni', '/usr/libexec/cni/cni', join(parts.cni.folder, 'cni'), 0o755)
  for (const name of cniPlugins) tree.link('cni', `/usr/libexec/cni/${name}`, 'cni')
  tree.file('pause', '/usr/libexec/ichor/pause', join(parts.pause.folder, 'pause'), 0o755)

  const lock = !relock && existsSync(lockPath) ? parseLock(readFileSync(lockPath, 'utf8')) : new Map()
  const debian = await addDebianFiles(tree, lock, [binary.path])
  for (const { name, from, to } of debian.moved) {
    if (!relock)
      console.error(`Debian package ${name}: ${from ? `the archive has moved from ${from} on to` : 'not in debian.lock, taking'} ${to}`)
  }
  if (relock) writeFileSync(lockPath, formatLock(debian.packages))

  const table = await addImages(tree, (path) => librariesOf(tree, path))

  const entries = tree.entries()
  const stored = await pack(nodeImage, entries, new BlockPress(blocks, zstd(nodeLevel)), nodeBlocks)
  const shipped = fast ? undefined : await pack(shippedImage, entries, new BlockPress(blocks, await xz(shippedBlocks)), shippedBlocks)
  console.log(sizeTable(tree, shipped ?? stored))
  mkdirSync(dist, { recursive: true })
  linkTo(join(parts.runc.folder, 'runc'), join(dist, 'runc'))
  linkTo(join(parts.kubectl.folder, 'kubectl'), join(dist, 'kubectl'))
  console.log(`${table.images.length} container images inside, ${formatTime(performance.now() - started)} in all`)
}

/** Packs the tree; the file changes only when its bytes do. */
async function pack(name: string, entries: TreeEntry[], press: BlockPress, blockSize: number): Promise<Map<string, number>> {
  const shown = task(`packing dist/${name}`)
  const output = join(dist, name)
  const unfinished = `${output}.${process.pid}`
  try {
    const progress = (done: number, total: number) => shown.at(`${formatSize(done)} of ${formatSize(total)}`)
    const { size, stored } = await writeSquashfs(unfinished, entries, { blockSize, press, progress })
    const { sha256 } = await hashFile(unfinished)
    const same = existsSync(output) && (await hashFile(output)).sha256 === sha256
    if (!same) renameSync(unfinished, output)
    shown.done(`${same ? 'unchanged' : `${press.fresh} blocks compressed`}, ${formatSize(size)}, sha256 ${sha256}`)
    return stored
  } catch (error) {
    shown.failed()
    throw error
  } finally {
    rmSync(unfinished, { force: true })
  }
}

const kubeNames = [
  'coredns',
  'etcd',
  'etcdctl',
  'etcdutl',
  'flanneld',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-proxy',
  'kube-scheduler',
  'kubectl',
  'kubelet',
]

try {
  await build()
} catch (error) {
  failed(error)
}
