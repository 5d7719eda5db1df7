/** Loads modules of the running kernel with their dependencies. */
import { moduleName, moduleOrder, parseModulesDep } from '../../wire/modules-dep.ts'
import type { Kernel } from '../kernel.ts'

type Dependencies = Pick<Kernel, 'files' | 'modules' | 'uts'>

/** Limit of modules.dep and modules.builtin, in bytes. */
const limit = 4 << 20

/** While this is 1 the kernel loads no more modules, until the next boot. */
export const lock = 'kernel.modules_disabled'

/** A module that can no longer be loaded. */
export class ModulesLocked extends Error {
  override name = 'ModulesLocked'
  constructor(name: string) {
    super(`load kernel module "${name}": the machine is up and takes no more modules, it is loaded at the next reboot`)
  }
}

/** Loads by name; a built-in or loaded module is no error. Returns the names of the modules that were loaded now. */
export function moduleLoader({ files, modules, uts }: Dependencies): (name: string, parameters?: readonly string[]) => string[] {
  const folder = `/usr/lib/modules/${uts.uname().release}`
  const dependencies = parseModulesDep(files.readText(`${folder}/modules.dep`, { limit }))
  const builtin = new Set(files.readText(`${folder}/modules.builtin`, { limit }).split('\n').filter(Boolean).map(moduleName))
  return (name, parameters = []) => {
    if (builtin.has(name.replaceAll('-', '_'))) return []
    const paths = moduleOrder(dependencies, [name])
    return paths.filter((path, at) => modules.loadModule(`${folder}/${path}`, at === paths.length - 1 ? parameters : [])).map(moduleName)
  }
}
