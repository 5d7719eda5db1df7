/** `modules.dep` (modules.dep(5)): the dependencies of kernel modules. */
import { DecodeError } from './decode-error.ts'

const limit = 100_000

/** Modules by the path of their file: the paths of all modules they depend on. */
export type ModuleDependencies = ReadonlyMap<string, readonly string[]>

/** Parses `path: path path …` lines. */
export function parseModulesDep(text: string): ModuleDependencies {
  const found = new Map<string, string[]>()
  let offset = 0
  for (const line of text.split('\n')) {
    if (line !== '') {
      const colon = line.indexOf(':')
      const path = line.slice(0, colon)
      if (colon < 1 || path.includes(' ')) throw new DecodeError('modules.dep', offset, 'a line without a module before a colon')
      if (found.size >= limit) throw new DecodeError('modules.dep', offset, `more than ${limit} modules`)
      found.set(
        path,
        line
          .slice(colon + 1)
          .split(' ')
          .filter(Boolean),
      )
    }
    offset += line.length + 1
  }
  return found
}

/** A module's name in the kernel: `nls_utf8` for `kernel/fs/nls/nls-utf8.ko.xz`. */
export function moduleName(path: string): string {
  return path
    .slice(path.lastIndexOf('/') + 1)
    .replace(/\.ko(\.[a-z0-9]+)?$/, '')
    .replaceAll('-', '_')
}

/** A requested module does not exist, or modules depend on each other in a cycle. */
export class ModuleOrderError extends Error {
  override name = 'ModuleOrderError'
}

/** Paths of the named modules and all their dependencies, dependencies first. */
export function moduleOrder(dependencies: ModuleDependencies, names: readonly string[]): string[] {
  const paths = new Map([...dependencies.keys()].map((path) => [moduleName(path), path]))
  const ordered = new Set<string>()
  const within = new Set<string>()
  const add = (path: string, asker: string) => {
    if (ordered.has(path)) return
    const needed = dependencies.get(path)
    if (!needed) throw new ModuleOrderError(`module "${path}", needed by ${asker}, is not in modules.dep`)
    if (within.has(path)) throw new ModuleOrderError(`modules need each other in a circle: ${[...within, path].join(' → ')}`)
    within.add(path)
    for (const each of needed) add(each, `"${path}"`)
    within.delete(path)
    ordered.add(path)
  }
  for (const name of names) {
    const path = paths.get(name.replaceAll('-', '_'))
    if (!path) throw new ModuleOrderError(`module "${name}" is not in modules.dep`)
    add(path, 'the list')
  }
  return [...ordered]
}
