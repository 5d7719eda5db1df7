/** The root file system of a machine: the tree of the build, the kernel's modules, and what this image was made with. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { SpdxDocument } from '../../src/oci/spdx.ts'
import type { Tree } from '../../src/programs/factory/root/tree.ts'
import { verifyTree } from '../../src/programs/factory/root/verify.ts'
import { assemble } from '../build/assemble.ts'
import type { KubernetesRelease } from '../build/kubernetes.ts'
import { fastest, pack, smallest } from '../build/pack.ts'
import { withParts } from '../build/rootfs.ts'
import { debianPartsOf } from '../build/sbom-parts.ts'
import { type SizeRow, sizeRows } from '../build/size-table.ts'
import type { Target } from '../build/target.ts'
import { xz, zstd } from '../squashfs/compressor.ts'
import { vexOf } from '../vex.ts'
import { addExtensions, unpackExtensions } from './extensions/extensions.ts'
import type { Starters } from './kernel.ts'
import { loadedBeforeLock } from './modules.ts'

/** What is loaded before no module can be loaded any more, a name a line. */
const beforeLockPath = '/usr/share/ichor/hot-plug-modules'

/** Where init looks for a configuration that comes with the image (src/os/config/sources/embedded.ts). */
const embeddedPath = '/usr/local/etc/talos/config.yaml'

/** Choices of a root file system. */
export interface RootOptions {
  kubernetes: KubernetesRelease
  target: Target
  /** Packed quickly and less tightly. */
  fast: boolean
  relock: boolean
  locked: boolean
  /** Folder with files that drivers ask for, as below /usr/lib/firmware. */
  firmware?: string | undefined
  /** Images of system extensions: archives, folders or references. */
  extensions?: readonly string[]
  /** File with a machine configuration that the image carries. */
  embedConfig?: string | undefined
}

/** A packed root file system. */
export interface MachineRoot {
  path: string
  /** SPDX document as text. */
  sbom: string
  /** OpenVEX document as text. */
  vex: string
  rows: SizeRow[]
}

/** Builds what is missing and packs it into a file. */
export async function makeRoot(
  path: string,
  { kernel, packages }: Starters,
  { kubernetes, target, fast, relock, locked, firmware, extensions: images = [], embedConfig }: RootOptions,
): Promise<MachineRoot> {
  const { extensions, remove } = await unpackExtensions(images, target.arch)
  try {
    return await withParts({ kubernetes, target }, async ({ program, programs }) => {
      const { tree, sbom } = await assemble(program, programs, {
        kubernetes,
        target,
        relock,
        locked,
        also: debianPartsOf(packages, target),
      })
      addFolder(tree, 'modules', join(kernel.modules, kernel.release), `/usr/lib/modules/${kernel.release}`)
      if (firmware) addFolder(tree, 'firmware', firmware, '/usr/lib/firmware')
      tree.text(
        'modules',
        beforeLockPath,
        loadedBeforeLock(kernel.paths)
          .map((name) => `${name}\n`)
          .join(''),
      )
      addEmbedded(tree, embedConfig)
      // Before extensions: their files are no part of Debian's packages, which the statements are about.
      const paths = tree.entries().map((entry) => entry.path)
      const vex = `${JSON.stringify(vexOf({ arch: target.arch, sbom: JSON.parse(sbom) as SpdxDocument, paths }), null, 1)}\n`
      await addExtensions(tree, extensions, kernel)
      verifyTree(tree)
      const { blockSize } = fast ? fastest : smallest
      const stored = await pack(path, tree.entries(), fast ? zstd(fastest.level) : await xz(blockSize, target), blockSize)
      return { path, sbom, vex, rows: sizeRows(tree, stored) }
    })
  } finally {
    remove()
  }
}

/** Adds the machine configuration that an image carries, if it carries one. */
export function addEmbedded(tree: Tree, file: string | undefined): void {
  if (file) tree.text('configuration', embeddedPath, readFileSync(file), 0o600)
}

/** Everything below a folder of the build machine. */
function addFolder(tree: Tree, part: string, from: string, to: string): void {
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    const source = join(entry.parentPath, entry.name)
    const path = `${to}${source.slice(from.length)}`
    if (entry.isSymbolicLink()) tree.link(part, path, readlinkSync(source))
    else if (entry.isFile()) tree.file(part, path, source, 0o644)
    else tree.dir(part, path)
  }
}
