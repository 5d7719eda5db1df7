/** Loads modules of the running kernel with all they need. */
import { moduleName, moduleOrder, parseModulesDep } from '../../wire/modules-dep.ts'
import type { Kernel } from '../kernel.ts'

type Parts = Pick<Kernel, 'files' | 'modules' | 'uts'>

/** Bytes of modules.dep and modules.builtin that are read at most. */
const limit = 4 << 20

/** While this is 1 the kernel takes no module any more, until it is started anew. */
export const lock = 'kernel.modules_disabled'

/** A module that cannot be loaded because the time for that is over. */
export class ModulesLocked extends Error {
  override name = 'ModulesLocked'
  constructor(name: string) {
    super(`load kernel module "${name}": the machine is up and takes no more modules, it is loaded at the next reboot`)
  }
}

/** Loads by name; a module that is built in or there already is no error. Gives the names of those loaded now. */
export function moduleLoader({ files, modules, uts }: Parts): (name: string, parameters?: readonly string[]) => string[] {
  const folder = `/usr/lib/modules/${uts.uname().release}`
  const dependencies = parseModulesDep(files.readText(`${folder}/modules.dep`, { limit }))
  const builtin = new Set(files.readText(`${folder}/modules.builtin`, { limit }).split('\n').filter(Boolean).map(moduleName))
  return (name, parameters = []) => {
    if (builtin.has(name.replaceAll('-', '_'))) return []
    const paths = moduleOrder(dependencies, [name])
    return paths.filter((path, at) => modules.loadModule(`${folder}/${path}`, at === paths.length - 1 ? parameters : [])).map(moduleName)
  }
}
