/** The tables of the kernel modules of a release, made again with the modules of extensions. */
import type { KernelModule } from '../../../wire/modules/dependencies.ts'
import { parseModule } from '../../../wire/modules/module-file.ts'
import { moduleTables } from '../../../wire/modules/tables.ts'
import { moduleName } from '../../../wire/modules-dep.ts'
import type { ExtensionFiles, ExtensionMetadata } from '../extensions.ts'
import type { ContentReader } from './contents.ts'
import { allModules, extensionModules, moduleFilesOf, modulesFolder, tablesEntry } from './modules.ts'
import type { SquashfsBase } from './read.ts'
import type { Tree } from './tree.ts'
import { VerifyError } from './verify.ts'

/** The release. */
interface Own {
  readonly base: SquashfsBase
  readonly reader: ContentReader
  readonly signal: AbortSignal
}

/** Puts the tables into a tree that has the files of extensions; their entry in the list of these, when extensions have modules. Throws VerifyError, ModuleTableError and SquashfsError. */
export async function addModules(
  tree: Tree,
  files: readonly { file: ExtensionFiles[number]; part: string }[],
  own: Own,
): Promise<ExtensionMetadata | undefined> {
  const found = moduleFilesOf(files)
  const [first] = found
  if (!first) return undefined
  const release = kernelOf(own.base)
  if (release === undefined) throw new VerifyError(`"${first.file.path}" (${first.part}) is a kernel module, and the release has none`)
  const added = await extensionModules(found, release)
  const folder = `${modulesFolder}${release}/`
  const modules = allModules(await ownModules(folder, own), added)
  const order = (await own.reader.content(`${folder}modules.order`)).toString('latin1')
  for (const [name, bytes] of moduleTables(modules, order)) tree.replace('the tables of modules', `${folder}${name}`, bytes)
  return tablesEntry(release)
}

/** The kernel whose modules the release has. */
function kernelOf({ entries }: SquashfsBase): string | undefined {
  const table = entries.find(({ path }) => path.startsWith(modulesFolder) && path.split('/').length === 6 && path.endsWith('/modules.dep'))
  return table?.path.split('/')[4]
}

async function ownModules(folder: string, { base, reader, signal }: Own): Promise<KernelModule[]> {
  const found: KernelModule[] = []
  for (const { path, linkTo } of base.entries) {
    if (!path.startsWith(folder) || !path.endsWith('.ko')) continue
    signal.throwIfAborted()
    const file = parseModule(await reader.content(linkTo ?? path))
    found.push({ path: path.slice(folder.length), name: moduleName(path), file })
  }
  return found
}
