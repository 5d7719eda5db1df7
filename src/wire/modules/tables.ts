/** The tables of the modules of a kernel that kmod and udev read (modules.dep(5)), as depmod(8) makes them. */
import { dependenciesOf, exportersOf, type KernelModule, ModuleTableError } from './dependencies.ts'
import { formatIndex, type IndexEntry } from './prefix-tree.ts'

/** Of names in tables, which also bounds how deep an index is. */
const longest = 1024
const most = 16_384
const word = /^[!-~]+$/
const phrase = /^[ -~]+$/

/** The tables by the names of their files. `order` is the text of `modules.order`: of two modules for a device the earlier one comes first. Throws ModuleTableError. */
export function moduleTables(given: readonly KernelModule[], order: string): Map<string, Uint8Array> {
  if (given.length > most) throw new ModuleTableError(`${given.length} modules: at most ${most} are listed`)
  const places = new Map(order.split('\n').map((path, at) => [path, at]))
  const place = ({ path }: KernelModule) => places.get(path) ?? places.size
  const modules = [...given].sort((a, b) => place(a) - place(b))
  const priorities = new Map(modules.map((module, at) => [module, at]))
  const entry = (key: string, value: string, module: KernelModule): IndexEntry => ({ key, value, priority: priorities.get(module) ?? 0 })
  const dependencies = dependenciesOf(modules)
  const lines = modules.map((module) => {
    const needed = (dependencies.get(module) ?? []).map(({ path }) => ` ${checked(path, word, module)}`)
    return { module, line: `${checked(module.path, word, module)}:${needed.join('')}` }
  })
  const aliases = modules.flatMap((module) => valuesOf(module, 'alias').map((alias) => ({ module, alias: checked(alias, word, module) })))
  const symbols = [...exportersOf(modules)].map(([symbol, module]) => ({ module, key: `symbol:${checked(symbol, word, module)}` }))
  const softly = modules.flatMap((module) =>
    valuesOf(module, 'softdep').map((value) => `softdep ${module.name} ${checked(value, phrase, module)}`),
  )
  const text = (title: string, all: readonly string[]) => Buffer.from(`${[title, ...all].join('\n')}\n`, 'latin1')
  return new Map([
    ['modules.dep', Buffer.from(lines.map(({ line }) => `${line}\n`).join(''), 'latin1')],
    ['modules.dep.bin', formatIndex(lines.map(({ module, line }) => entry(module.name, line, module)))],
    [
      'modules.alias',
      text(
        '# Aliases extracted from modules themselves.',
        aliases.map(({ module, alias }) => `alias ${alias} ${module.name}`),
      ),
    ],
    [
      'modules.alias.bin',
      formatIndex(
        aliases.flatMap(({ module, alias }) => {
          const key = normalized(alias)
          return key === undefined ? [] : [entry(key, module.name, module)]
        }),
      ),
    ],
    ['modules.softdep', text('# Soft dependencies extracted from modules themselves.', softly)],
    [
      'modules.symbols',
      text(
        '# Aliases for symbols, used by symbol_request().',
        symbols.map(({ module, key }) => `alias ${key} ${module.name}`),
      ),
    ],
    ['modules.symbols.bin', formatIndex(symbols.map(({ module, key }) => entry(key, module.name, module)))],
    ['modules.devname', deviceNames(modules)],
  ])
}

const valuesOf = ({ file }: KernelModule, wanted: string) => file.info.filter(([key]) => key === wanted).map(([, value]) => value)

function checked(text: string, form: RegExp, { path }: KernelModule): string {
  if (text.length > longest || !form.test(text))
    throw new ModuleTableError(
      `module ${JSON.stringify(path.slice(0, 200))}: ${JSON.stringify(text.slice(0, 100))} fits in no table of modules`,
    )
  return text
}

/** An alias as it is looked up: with underscores, except in sets of characters; undefined when a set does not end. */
function normalized(alias: string): string | undefined {
  const outside = alias.replace(/\[[^\]]*\]/g, '')
  return /[[\]]/.test(outside) ? undefined : alias.replace(/\[[^\]]*\]|-/g, (found) => (found === '-' ? '_' : found))
}

/** Device nodes that are made before their modules are loaded. */
function deviceNames(modules: readonly KernelModule[]): Buffer {
  const lines = modules.flatMap((module) => {
    let [name, number]: (string | undefined)[] = []
    for (const alias of valuesOf(module, 'alias')) {
      if (alias.startsWith('devname:')) name = alias.slice('devname:'.length)
      const [, kind, major, minor] = /^(char|block)-major-(\d+)-(\d+)/.exec(alias) ?? []
      if (kind) number = `${kind[0]}${major}:${minor}`
      if (name !== undefined && number !== undefined) return [`${module.name} ${name} ${number}\n`]
    }
    return []
  })
  return Buffer.from(lines.length > 0 ? ['# Device nodes to trigger on-demand module loading.\n', ...lines].join('') : '', 'latin1')
}
