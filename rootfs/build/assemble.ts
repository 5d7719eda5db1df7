/** Puts all parts together into the tree that is packed. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import packageJson from '../../package.json'
import type { SbomPart } from '../../src/oci/spdx.ts'
import { Tree } from '../../src/programs/factory/root/tree.ts'
import { verifyTree } from '../../src/programs/factory/root/verify.ts'
import { addDebianFiles, librariesOf } from '../debian/files.ts'
import { formatLock, type LockedPackage, parseLock } from '../debian/lock.ts'
import { addImages, imagePlans } from '../images.ts'
import { sbomOf, sbomPath } from '../sbom.ts'
import { addBase, addBinary } from './base.ts'
import { bundledPackages, described } from './binary.ts'
import { addPrograms, type BuiltProgram, programParts } from './built-programs.ts'
import type { KubernetesRelease } from './kubernetes.ts'
import { binaryPart, debianPartsOf } from './sbom-parts.ts'
import { addPolicy } from './selinux.ts'
import { type Target, targets } from './target.ts'

/** The lock of Debian packages. */
export const lockPathOf = ({ suffix }: Target): string => join(import.meta.dir, `../debian${suffix}.lock`)
export const lockPath: string = lockPathOf(targets.amd64)

/** How a tree is put together. */
export interface AssembleOptions {
  kubernetes: KubernetesRelease
  target?: Target
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

/** Adds the files of Debian packages, and the libraries of other programs on the build machine. Throws MovedError. */
export async function addPackages(
  tree: Tree,
  others: readonly string[],
  { target = targets.amd64, relock = false, locked = false }: Pick<AssembleOptions, 'target' | 'relock' | 'locked'> = {},
): Promise<LockedPackage[]> {
  const lockPath = lockPathOf(target)
  const lock = !relock && existsSync(lockPath) ? parseLock(readFileSync(lockPath, 'utf8')) : new Map()
  const { packages, moved } = await addDebianFiles(tree, lock, others, target)
  if (relock) writeFileSync(lockPath, formatLock(packages))
  for (const { name, from, to } of relock ? [] : moved) {
    const message = `Debian package ${name}: ${from ? `the archive has moved on from ${from} to` : 'not in debian.lock, taken in'} ${to}`
    if (locked)
      throw new MovedError(
        `${message}: only packages in rootfs/${basename(lockPath)} are accepted; --unlocked accepts the newer one, --lock rewrites the file`,
      )
    console.error(message)
  }
  return packages
}

/** The tree of the root file system, and its SBOM as text. */
export async function assemble(
  binary: string,
  programs: readonly BuiltProgram[],
  { kubernetes, target = targets.amd64, relock = false, locked = false, also = [] }: AssembleOptions,
): Promise<{ tree: Tree; sbom: string; images: number }> {
  const tree = new Tree()
  addBase(tree, packageJson.version, target)
  addBinary(tree, binary)
  addPrograms(tree, programs)
  await addPolicy(tree)

  const packages = await addPackages(tree, [binary], { target, relock, locked })
  const { images } = await addImages(tree, imagePlans(kubernetes, target), (path) => librariesOf(tree, path, target), target.arch)

  const { ichorBuilt: committed } = await described()
  const created = new Date(committed ?? 0).toISOString().replace(/\.\d+Z$/, 'Z')
  const sbom = sbomOf(packageJson.version, created, [
    await binaryPart(binary, packageJson.version, await bundledPackages()),
    ...(await programParts(programs, target)),
    ...debianPartsOf(packages, target),
    ...also,
  ])
  const text = `${JSON.stringify(sbom, null, 1)}\n`
  tree.text('sbom', sbomPath, text)
  verifyTree(tree)
  return { tree, sbom: text, images: images.length }
}
