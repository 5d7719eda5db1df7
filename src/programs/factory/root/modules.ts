/** Kernel modules that extensions bring: what is looked at before they become part of an image, and the tables that list them. */
import { DecodeError } from '../../../wire/decode-error.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { KernelModule } from '../../../wire/modules/dependencies.ts'
import { type ModuleFile, parseModule } from '../../../wire/modules/module-file.ts'
import { moduleName } from '../../../wire/modules-dep.ts'
import type { ExtensionFiles, ExtensionMetadata } from '../extensions.ts'
import { sourceOf, type TreeEntry } from './tree.ts'
import { VerifyError } from './verify.ts'

/** Below it each kernel has a folder. */
export const modulesFolder = '/usr/lib/modules/'

/** The end of the release of a kernel that accepts no modules but those of its own build (rootfs/kernel/options). */
export const closedSuffix = '-ichor-hardened'

/** A file of an extension, with the part of the tree that it is of. */
interface FileOfExtension {
  readonly file: Pick<ExtensionFiles[number], 'path' | 'type' | 'mode' | 'source' | 'bytes'>
  readonly part: string
}

/** Those of the files of extensions that lie among the modules. */
export const moduleFilesOf = <File extends FileOfExtension>(files: readonly File[]): File[] =>
  files.filter(({ file }) => file.path.startsWith(modulesFolder) && file.type === 'file')

const plain = /^[!-~]+$/

/** The modules of extensions for a kernel. Throws VerifyError for the first that it would not load. */
export async function extensionModules(files: readonly FileOfExtension[], release: string): Promise<KernelModule[]> {
  const found = new Map<string, KernelModule>()
  for (const { file, part } of files) {
    const { path } = file
    const refuse = (reason: string) => new VerifyError(`"${path}" (${part}) ${reason}`)
    if (release.endsWith(closedSuffix)) throw refuse(`is not loaded by kernel ${release}, which accepts modules of its own build only`)
    const [kernel = '', ...below] = path.slice(modulesFolder.length).split('/')
    if (kernel !== release) throw refuse(`is of kernel ${kernel}, and this image has kernel ${release}: build it for that one`)
    if (/\.ko\.\w+$/.test(path)) throw refuse('is compressed: modules are loaded as they are, with names in ".ko"')
    if (!path.endsWith('.ko')) continue
    if (!plain.test(path)) throw refuse('has a name with blanks or other characters that fit in no table of modules')
    const module = { path: below.join('/'), name: moduleName(path), file: await read({ ...file, type: 'file', part }, refuse) }
    const twin = found.get(module.name)
    if (twin) throw refuse(`has the name of "${modulesFolder}${release}/${twin.path}"`)
    const [built = ''] = (module.file.info.find(([key]) => key === 'vermagic')?.[1] ?? '').split(' ')
    if (built !== release)
      throw refuse(`was built for kernel ${plain.test(built) ? built : 'of no name'}, and this image has kernel ${release}`)
    if (!module.file.signed) throw refuse('is not signed, and the kernel loads signed modules only')
    found.set(module.name, module)
  }
  return [...found.values()]
}

async function read(entry: TreeEntry, refuse: (reason: string) => VerifyError): Promise<ModuleFile> {
  try {
    return parseModule(entry.bytes ?? (await Bun.file(sourceOf(entry)).bytes()))
  } catch (error) {
    if (error instanceof DecodeError) throw refuse(`is no kernel module: ${messageOf(error)}`)
    throw error
  }
}

/**
 * The modules of the system and of extensions together. A module below `updates/` takes the place of the system's module of its name,
 * as in depmod.d(5). Throws VerifyError for another one with such a name.
 */
export function allModules(own: readonly KernelModule[], added: readonly KernelModule[]): KernelModule[] {
  const byName = new Map(own.map((module) => [module.name, module]))
  for (const module of added) {
    const twin = byName.get(module.name)
    if (twin && !module.path.startsWith('updates/'))
      throw new VerifyError(
        `module "${module.path}" has the name of "${twin.path}" of the system: only one below "updates/" takes its place`,
      )
    byName.set(module.name, module)
  }
  return [...byName.values()]
}

/** The entry of the tables in the list of extensions, by which clients recognise that they were made again. */
export const tablesEntry = (release: string): ExtensionMetadata => ({
  name: 'modules.dep',
  version: release,
  author: 'Ichor',
  description: 'Dependencies of the kernel modules of the system and of its extensions',
  compatibility: { talos: { version: '' } },
})
