/** What tables show is available to programs: every command that prints a table takes --output, and prints what its schema states. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Command } from 'commander'
import { Cluster } from '../../../src/programs/talosctl/cluster.ts'
import { commands } from '../../../src/programs/talosctl/command-table.ts'
import { OutputOption } from '../../../src/programs/talosctl/output/output.ts'
import { mismatches, schemaText } from '../../../src/programs/talosctl/output/schema.ts'
import { build } from '../../../src/programs/talosctl/talosctl.ts'
import { talosctl, textIo } from './peer.ts'
import { sampleMethods } from './sample-methods.ts'

const source = join(import.meta.dir, '../../../src/programs/talosctl')
const tables = join(source, 'output/table.ts')
const modules = new Map<string, Module>()

/** The source of each command's action: recorded while the commands are built. */
const actions = new Map<Command, string>()
const leaves: { path: string; command: Command; files: readonly string[] }[] = []
const declare = Command.prototype.action
Command.prototype.action = function (this: Command, act) {
  actions.set(this, act.toString())
  return declare.call(this, act)
}
const io = textIo()
for (const [name, entry] of Object.entries(commands)) {
  const [, from = ''] = /import\(["'](.*?)["']\)/.exec(entry.load.toString()) ?? []
  const file = join(source, from)
  // The commands of a group may be declared in files of their own.
  const files = [
    file,
    ...[...moduleOf(file).imported.values()].map((one) => one.file).filter((one) => one.startsWith(`${source}/commands/`)),
  ]
  const visit = (command: Command, path: string) => {
    if (actions.has(command)) leaves.push({ path, command, files })
    for (const one of command.commands) visit(one, `${path} ${one.name()}`)
  }
  visit(await build(name, entry, io, new Cluster(io)), name)
}
Command.prototype.action = declare

interface Module {
  /** Top-level declarations by name. */
  readonly own: ReadonlyMap<string, string>
  /** Imported names, and the files they are from. */
  readonly imported: ReadonlyMap<string, { file: string; name: string }>
}

function moduleOf(file: string): Module {
  const known = modules.get(file)
  if (known) return known
  const text = existsSync(file) ? readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\//g, '') : ''
  const own = new Map<string, string>()
  for (const part of text.split(/^(?=(?:export )?(?:async function|function|const|class|let)\b)/m)) {
    const name = /^(?:export )?(?:async function|function|const|class|let)\*? ?\*?\s*(\w+)/.exec(part)?.[1]
    if (name) own.set(name, part)
  }
  const imported = new Map<string, { file: string; name: string }>()
  const names = (list: string, from: string, as: RegExp) => {
    for (const one of list.split(',')) {
      const [name = '', local = name] = one.trim().split(as)
      if (name && !name.startsWith('type ')) imported.set(local, { file: join(dirname(file), from), name })
    }
  }
  for (const [, list = '', from = ''] of text.matchAll(/^import \{([^}]*)\} from '(\.[^']*)'/gm)) names(list, from, / as /)
  for (const [, list = '', from = ''] of text.matchAll(/const \{([^}]*)\} = await import\(\s*'(\.[^']*)'\s*\)/g)) names(list, from, /: /)
  const module = { own, imported }
  modules.set(file, module)
  return module
}

/** Code without the contents of strings and without comments; what templates insert is code. */
function withoutText(text: string): string {
  let code = ''
  const open: string[] = []
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? ''
    const inside = open.at(-1)
    if (inside === '`' && text.startsWith('${', at)) {
      open.push('}')
      at++
    } else if (inside && inside !== '}') {
      if (char === '\\') at++
      else if (char === inside) open.pop()
    } else if (text.startsWith('//', at)) at = Math.max(at, text.indexOf('\n', at) - 1)
    else if (char === '}' && inside === '}') code += ` ${open.pop()}`
    else if (char === '{' && inside === '}') open.push('}')
    else if (`'"\``.includes(char)) open.push(char)
    else code += char
  }
  return code
}

/** Whether the text, of this file, uses what makes tables, itself or through what it uses. */
function printsTable(file: string, text: string, seen = new Set<string>()): boolean {
  const { own, imported } = moduleOf(file)
  const code = withoutText(text)
  return [...new Set(code.match(/(?<![.\w#])[A-Za-z_]\w*(?!\w|:)/g))].some((word) => {
    const target = own.has(word) ? { file, name: word } : imported.get(word)
    if (!target || seen.has(`${target.file}#${target.name}`)) return false
    seen.add(`${target.file}#${target.name}`)
    if (target.file === tables) return target.name === 'table' || target.name === 'LiveTable'
    if (!target.file.startsWith(source)) return false
    return printsTable(target.file, moduleOf(target.file).own.get(target.name) ?? '', seen)
  })
}

/** Commands whose table is no result. */
const exempt: Record<string, string> = {
  'cluster destroy': 'as support, for its archive',
  support: 'the failures, on stderr; the result is a zip file',
  'upgrade-k8s': 'the text of an error',
}

const withTable = leaves.filter(({ command, files }) => files.some((file) => printsTable(file, actions.get(command) ?? '')))
const optionsOf = (command: Command) => [...command.options, ...(command.parent?.options ?? [])]

describe('a table is available to programs:', () => {
  test('the commands that print one are found by what their actions use', () => {
    const paths = withTable.map(({ path }) => path)
    expect(paths.length).toBeGreaterThan(25)
    expect(paths).toContain('cluster show')
    expect(paths).toContain('service')
    expect(paths).toContain('etcd downgrade cancel')
    expect(paths).not.toContain('read')
    expect(Object.keys(exempt).filter((path) => !paths.includes(path))).toEqual([])
  })

  test('each of them has --output with json, yaml and table', () => {
    const missing = withTable.filter(({ command }) => {
      const option = optionsOf(command).find(({ long }) => long === '--output')
      const formats = option?.argChoices ?? option?.description.split(/\W+/) ?? []
      return !['json', 'yaml', 'table'].every((format) => formats.includes(format))
    })
    expect(missing.map(({ path }) => path).filter((path) => !Object.hasOwn(exempt, path))).toEqual([])
  })
})

const schemas = leaves.flatMap(({ path, command }) => {
  const option = optionsOf(command).find((one) => one instanceof OutputOption)
  return option ? [{ path, option }] : []
})

test('each schema is text for the reference', () => {
  for (const { path, option } of schemas)
    for (const item of [option.item, ...Object.values(option.others)])
      expect([path, schemaText(item)]).toEqual([path, expect.stringMatching(/^\{\n {2}\w/)])
})

/** Commands that the sample machine does not answer, or that read files of this computer. */
const elsewhere = new Set([
  'cgroups', // tests/programs/talosctl/commands/process/cgroups.test.ts
  'cluster show', // tests/programs/talosctl/cluster/engine/create.test.ts
  'config-history', // tests/cluster/config.story.ts
  'config-history list',
  'config-history show', // prints no table
  'config-history diff',
  'config-history restore',
  'etcd backup list', // tests/programs/talosctl/commands/etcd/backup.test.ts
  'extension inspect', // tests/programs/talosctl/extension/extension.test.ts
  'measurements', // tests/programs/talosctl/commands/diagnostics/measurements.test.ts
  'install', // tests/programs/talosctl/commands/lifecycle/upgrade.test.ts
  'upgrade',
  'platform test', // tests/programs/talosctl/platform/platform.test.ts
])
const operands: Record<string, string[]> = { 'etcd downgrade validate': ['3.5'], 'etcd downgrade enable': ['3.5'], events: ['--tail', '1'] }

describe('what is printed has its schema:', () => {
  test.each(schemas.filter(({ path }) => !elsewhere.has(path)).map(({ path, option }) => [path, option] as const))(
    '%s',
    async (path, option) => {
      const words = [...path.split(' '), ...(operands[path] ?? [])]
      const json = await talosctl(sampleMethods(), [...words, '--output', 'json'])
      const yaml = await talosctl(sampleMethods(), [...words, '--output', 'yaml'])
      expect([json.code, json.stderr, yaml.code, yaml.stderr]).toEqual([0, '', 0, ''])
      const printed = JSON.parse(json.stdout.replace(/127.0.0.1:\d+/g, 'endpoint'))
      expect(Bun.YAML.parse(yaml.stdout.replace(/^---\n/, '').replace(/127.0.0.1:\d+/g, 'endpoint'))).toEqual(printed)
      const items = path === 'events' ? [printed] : printed
      expect(items.length).toBeGreaterThan(0)
      expect(items.flatMap((item: unknown) => mismatches(item, option.item))).toEqual([])
    },
  )

  test.each([
    [['service', 'apid', 'start'], 'of start, stop and restart'],
    [['service', 'id'], 'of one service'],
  ])('%p', async (words, use) => {
    const option = schemas.find(({ path }) => path === 'service')?.option
    const [item] = JSON.parse((await talosctl(sampleMethods(), [...words, '-o', 'json'])).stdout)
    expect(item.node).toBe('10.6.0.2')
    expect(mismatches(item, option?.others[use] ?? 'string')).toEqual([])
  })
})
