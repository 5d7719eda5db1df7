import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command, Option } from 'commander'
import { Cluster } from '../../../src/programs/talosctl/cluster.ts'
import { commands } from '../../../src/programs/talosctl/command-table.ts'
import { build, find } from '../../../src/programs/talosctl/talosctl.ts'
import { textIo } from './peer.ts'

const rows = (name: string) => {
  const [header = '', ...lines] = readFileSync(join(import.meta.dir, 'contract', name), 'utf8')
    .trimEnd()
    .split('\n')
  const names = header.split('\t')
  return lines.map((line) => Object.fromEntries(line.split('\t').map((cell, index) => [names[index] ?? '', cell])))
}

/** Commands of the table that are not there yet, or never will be. */
const absent = [/-launch$|^debug-tool|^image integration|^cluster create (dev|docker|qemu)/]
/** Flags of the table that are not there yet. */
const absentFlags = ['crashdump']

async function command(path: string): Promise<Command | undefined> {
  const [top = '', ...below] = path.split(' ')
  const found = find(top)
  if (!found) return undefined
  const io = textIo()
  let one: Command | undefined = await build(...found, io, new Cluster(io))
  for (const name of below) one = one?.commands.find((candidate) => candidate.name() === name || candidate.aliases().includes(name))
  return one
}

const isAbsent = (path: string) => absent.some((pattern) => pattern.test(path))

for (const { command_path: full = '', aliases = '', hidden } of rows('cli.tsv')) {
  const path = full.replace(/^talosctl ?/, '')
  if (path === '') continue
  if (isAbsent(path)) test(`${full} is absent`, async () => expect(await command(path)).toBeUndefined())
  else
    test(`${full} is there under all its names`, async () => {
      const found = await command(path)
      expect(found).toBeDefined()
      for (const alias of aliases.split(',').filter(Boolean)) {
        const [, ...rest] = path.split(' ').toReversed()
        expect(await command([...rest.toReversed(), alias].join(' '))).toBeDefined()
      }
      if (!path.includes(' ')) expect(commands[path]?.hidden === true).toBe(hidden === 'yes')
    })
}

const flags = Map.groupBy(rows('cli-flags.tsv'), ({ command_path = '' }) => command_path.replace(/^talosctl ?/, ''))
for (const [path, declared] of flags) {
  if (isAbsent(path) || path.startsWith('cluster')) continue
  test(`talosctl ${path} takes the flags of the table`, async () => {
    const found = await command(path)
    const options: Option[] = [...(found?.options ?? []), ...(found?.parent?.options ?? [])]
    const missing = declared
      .filter(({ flag }) => !absentFlags.includes(`${path} --${flag}`) && !absentFlags.includes(path))
      .filter(({ flag, shorthand }) => {
        const option = options.find(({ long }) => long === `--${flag}` || long === `--no-${flag}`)
        return !option || (shorthand ? option.short !== `-${shorthand}` : false)
      })
    expect(missing.map(({ flag, shorthand }) => `--${flag}${shorthand ? ` -${shorthand}` : ''}`)).toEqual([])
  })
}

test('talosctl cluster create takes the flags of the table for virtual machines', async () => {
  const options = (await command('cluster create'))?.options.map(({ long }) => long) ?? []
  const declared = (flags.get('cluster create qemu') ?? []).map(({ flag }) => `--${flag}`)
  // A flag with two spellings is declared as "--cidr, --subnet": commander keeps the first as its short form.
  const short = (await command('cluster create'))?.options.map(({ short }) => short) ?? []
  expect(declared.length).toBeGreaterThan(15)
  expect(declared.filter((flag) => !options.includes(flag) && !short.includes(flag))).toEqual([])
})
