/** Puts all parts together into the tree that is packed. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import packageJson from '../../package.json'
import { addDebianFiles, librariesOf } from '../debian/files.ts'
import { formatLock, parseLock } from '../debian/lock.ts'
import { addImages } from '../images.ts'
import { type SbomPart, sbomOf, sbomPath } from '../sbom.ts'
import { addBase, addBinary } from './base.ts'
import { bundledPackages, described } from './binary.ts'
import type { BuiltPrograms } from './built-programs.ts'
import { cni, cniPlugins, containerd, kube, releases, runc } from './go-recipes.ts'
import { binaryPart, debianPartsOf, goPart, linkedFromHost, pausePart } from './sbom-parts.ts'
import { Tree } from './tree.ts'
import { verifyTree } from './verify.ts'

/** The lock of Debian packages. */
export const lockPath: string = join(import.meta.dir, '../debian.lock')

/** Names under which programs of the kube binary are called in a node. */
const kubeNames = [
  'coredns',
  'etcd',
  'etcdutl',
  'flanneld',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-proxy',
  'kube-scheduler',
  'kubelet',
]

/** How a tree is put together. */
export interface AssembleOptions {
  /** Rewrite debian.lock from the current archive. */
  relock?: boolean
  /** Take exactly what debian.lock names, or nothing. */
  locked?: boolean
  /** Additional contents of the SBOM. */
  also?: readonly SbomPart[]
}

/** The archive no longer has what debian.lock names. */
export class MovedError extends Error {
  override name = 'MovedError'
}

/** The tree of the root file system, and its SBOM as text. */
export async function assemble(
  binary: string,
  parts: BuiltPrograms,
  { relock = false, locked = false, also = [] }: AssembleOptions = {},
): Promise<{ tree: Tree; sbom: string; images: number }> {
  const tree = new Tree()
  addBase(tree, packageJson.version)
  addBinary(tree, binary)
  tree.file('kube', '/usr/bin/kube', parts.kube, 0o755)
  for (const name of kubeNames) tree.link('kube', `/usr/bin/${name}`, 'kube')
  tree.file('containerd', '/usr/bin/containerd', parts.containerd, 0o755)
  // A hard link: the shim starts itself again by the path of its file.
  tree.add({ path: '/usr/bin/containerd-shim-runc-v2', type: 'file', mode: 0o755, linkTo: '/usr/bin/containerd', part: 'containerd' })
  tree.file('runc', '/usr/bin/runc', parts.runc, 0o755)
  tree.file('cni', '/usr/libexec/cni/cni', parts.cni, 0o755)
  for (const name of cniPlugins) tree.link('cni', `/usr/libexec/cni/${name}`, 'cni')
  tree.file('pause', '/usr/libexec/ichor/pause', parts.pause, 0o755)

  const lock = !relock && existsSync(lockPath) ? parseLock(readFileSync(lockPath, 'utf8')) : new Map()
  const debian = await addDebianFiles(tree, lock, [binary])
  if (relock) writeFileSync(lockPath, formatLock(debian.packages))
  for (const { name, from, to } of relock ? [] : debian.moved) {
    const message = `Debian package ${name}: ${from ? `the archive has moved on from ${from} to` : 'not in debian.lock, taken in'} ${to}`
    if (locked)
      throw new MovedError(
        `${message}: only packages in rootfs/debian.lock are accepted; --unlocked accepts the newer one, --lock rewrites the file`,
      )
    console.error(message)
  }

  const { images } = await addImages(tree, (path) => librariesOf(tree, path))

  const { ICHOR_BUILT: committed } = await described()
  const created = new Date(committed ?? 0).toISOString().replace(/\.\d+Z$/, 'Z')
  const sbom = sbomOf(packageJson.version, created, [
    await binaryPart(binary, packageJson.version, await bundledPackages()),
    await goPart(kube, dirname(parts.kube), 'kube', releases.kubernetes),
    await goPart(containerd, dirname(parts.containerd), 'containerd', releases.containerd),
    await goPart(runc, dirname(parts.runc), 'runc', releases.runc, await linkedFromHost(['libc6-dev', 'libseccomp-dev'])),
    await goPart(cni, dirname(parts.cni), 'cni', releases.cni),
    await pausePart(dirname(parts.pause)),
    ...debianPartsOf(debian.packages),
    ...also,
  ])
  const text = `${JSON.stringify(sbom, null, 1)}\n`
  tree.text('sbom', sbomPath, text)
  verifyTree(tree)
  return { tree, sbom: text, images: images.length }
}
