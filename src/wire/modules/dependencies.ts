/** Which modules need which, from the symbols that they export and use, in the order of depmod(8). */
import type { ModuleFile } from './module-file.ts'

/** A module of a kernel. */
export interface KernelModule {
  /** Below the folder of the kernel. */
  readonly path: string
  /** In the kernel: with underscores. */
  readonly name: string
  readonly file: ModuleFile
}

/** Modules need each other in a circle, or their names are no words of a table. */
export class ModuleTableError extends Error {
  override name = 'ModuleTableError'
}

/** The modules that export symbols, by symbol; of two the later one. */
export const exportersOf = (modules: readonly KernelModule[]): Map<string, KernelModule> =>
  new Map(modules.flatMap((module) => module.file.exported.map((symbol) => [symbol, module] as const)))

/** All modules that each one needs, those that need others before these. A symbol that no module exports is the kernel's. */
export function dependenciesOf(modules: readonly KernelModule[]): Map<KernelModule, readonly KernelModule[]> {
  const exporters = exportersOf(modules)
  const needs = new Map<KernelModule, Set<KernelModule>>()
  for (const module of modules) {
    const found = new Set<KernelModule>()
    for (const symbol of module.file.needed) {
      // On some processors a name stands for its function with a dot before it.
      const exporter = exporters.get(symbol.startsWith('.') ? symbol.slice(1) : symbol)
      if (exporter) found.add(exporter)
    }
    needs.set(module, found)
  }
  const ranks = ranksOf(modules, needs)
  const rank = (module: KernelModule) => ranks.get(module) ?? 0
  const all = new Map<KernelModule, readonly KernelModule[]>()
  // What is needed has a higher rank: from the end, all that it needs itself is known.
  for (const module of [...ranks.keys()].reverse()) {
    const found = new Set<KernelModule>()
    for (const needed of needs.get(module) ?? []) for (const each of [needed, ...(all.get(needed) ?? [])]) found.add(each)
    all.set(
      module,
      [...found].sort((a, b) => rank(a) - rank(b)),
    )
  }
  return all
}

/** Numbers in which each module comes before those it needs. Throws ModuleTableError for a circle. */
function ranksOf(modules: readonly KernelModule[], needs: ReadonlyMap<KernelModule, ReadonlySet<KernelModule>>): Map<KernelModule, number> {
  const users = new Map<KernelModule, number>()
  for (const needed of needs.values()) for (const each of needed) users.set(each, (users.get(each) ?? 0) + 1)
  const free = modules.filter((module) => !users.has(module))
  const ranks = new Map<KernelModule, number>()
  for (let module = free.pop(); module; module = free.pop()) {
    ranks.set(module, ranks.size)
    for (const needed of needs.get(module) ?? []) {
      const left = (users.get(needed) ?? 0) - 1
      users.set(needed, left)
      if (left === 0) free.push(needed)
    }
  }
  const circle = modules.filter((module) => !ranks.has(module)).map(({ name }) => name)
  if (circle.length > 0) throw new ModuleTableError(`modules need each other in a circle: ${circle.slice(0, 10).join(', ')}`)
  return ranks
}
