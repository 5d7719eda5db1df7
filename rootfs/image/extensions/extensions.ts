/** System extensions of an image: their files become part of the root file system, under its verity hash. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { stringify } from 'yaml'
import { filesOf, layersOf, listPath } from '../../../src/programs/factory/root/extend.ts'
import { extensionModules, moduleFilesOf, modulesFolder, tablesEntry } from '../../../src/programs/factory/root/modules.ts'
import type { Tree } from '../../../src/programs/factory/root/tree.ts'
import type { ExtensionEntry } from '../../../src/programs/talosctl/extension/content.ts'
import { openImage } from '../../../src/programs/talosctl/extension/image-source.ts'
import { type Extension, unpackExtension } from '../../../src/programs/talosctl/extension/unpack.ts'
import { release } from '../../../src/release.ts'
import { UsageError } from '../../build/failure.ts'
import { run } from '../../build/run.ts'

/** Extensions whose files lie in a folder of their own. */
export interface UnpackedExtensions {
  readonly extensions: readonly Extension[]
  /** Removes the folder. */
  remove(): void
}

/** Fetches and checks extensions. Throws ExtensionError, UsageError and RegistryError. */
export async function unpackExtensions(images: readonly string[], arch: string): Promise<UnpackedExtensions> {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-extensions-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  const extensions: Extension[] = []
  const { signal } = new AbortController()
  try {
    for (const [index, image] of images.entries()) {
      const source = await openImage(image, { io: { env: process.env, signal } })
      const one = await unpackExtension(source, { folder: join(folder, `${index}`), arch, release: release.tag })
      const twin = extensions.find(({ metadata }) => metadata.name === one.metadata.name)
      if (twin) throw new UsageError(`extension "${one.metadata.name}" is given twice: as "${twin.origin}" and "${one.origin}"`)
      extensions.push(one)
    }
    return { extensions, remove }
  } catch (error) {
    remove()
    throw error
  }
}

/** A kernel whose modules an extension adds to. */
export interface ExtendedKernel {
  readonly release: string
  /** A folder with `<release>/…` and depmod's tables. */
  readonly modules: string
}

/**
 * Adds extensions to a tree, with the list of them. Where two have a file at one path the later one wins; none replaces a file of the
 * system. Throws TreeError, UsageError and VerifyError.
 */
export async function addExtensions(tree: Tree, extensions: readonly Extension[], kernel?: ExtendedKernel): Promise<void> {
  const files = filesOf(extensions.map(({ metadata, entries }) => ({ metadata, files: entries })))
  for (const { file, part } of files) addEntry(tree, file, part)
  const layers = layersOf(extensions)
  const modules = moduleFilesOf(files)
  if (modules.length > 0) {
    if (!kernel)
      throw new UsageError(
        `extensions with kernel modules (${modules[0]?.part}) go into images for machines, not for containers: leave --only oci out`,
      )
    await extensionModules(modules, kernel.release)
    await addModuleTables(
      tree,
      modules.map(({ file }) => file),
      kernel,
    )
    layers.push({ image: 'modules.dep.sqsh', metadata: tablesEntry(kernel.release) })
  }
  if (layers.length > 0) tree.replace('extensions', listPath, Buffer.from(stringify({ layers })))
}

function addEntry(tree: Tree, { path, type, mode, source, target }: ExtensionEntry, part: string): void {
  if (type === 'dir') tree.dir(part, path, mode)
  else if (type === 'symlink') tree.link(part, path, target ?? '')
  else if (source !== undefined) tree.file(part, path, source, mode)
}

/** Has depmod(8) list the modules of the kernel together with those of extensions. */
async function addModuleTables(
  tree: Tree,
  modules: readonly ExtensionEntry[],
  { modules: folder, release }: ExtendedKernel,
): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'ichor-modules-'))
  try {
    const below = join(work, 'lib/modules', release)
    cpSync(join(folder, release), below, { recursive: true })
    for (const { path, source } of modules) {
      const to = join(below, path.slice(`${modulesFolder}${release}/`.length))
      mkdirSync(dirname(to), { recursive: true })
      if (source !== undefined) cpSync(source, to)
    }
    await run(['/usr/sbin/depmod', '-b', work, release])
    for (const name of readdirSync(below).filter((each) => each.startsWith('modules.')))
      tree.replace('extensions', `${modulesFolder}${release}/${name}`, readFileSync(join(below, name)))
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
