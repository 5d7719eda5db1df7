/** The reference pages have everything there is, and say of everything what it is for. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { withKernelParameters } from '../../docs/generate/kernel-parameters.ts'
import { made } from '../../docs/generate.ts'
import { areas } from '../../src/programs/init/areas.ts'
import { commands } from '../../src/programs/talosctl/command-table.ts'
import { servedMethods } from '../os/served-methods.ts'

const folder = join(import.meta.dir, '../../docs/reference')
const generated = await made()
const { 'api.md': api = '', 'commands.md': commandsPage = '', 'resources.md': resources = '' } = generated

test('docs/reference is what the declarations generate: run "bun run docs"', async () => {
  const stale: string[] = []
  for (const [name, content] of Object.entries(generated)) if ((await Bun.file(join(folder, name)).text()) !== content) stale.push(name)
  expect(stale).toEqual([])
})

test('docs/boot.md has the kernel parameters that the machine knows: run "bun run docs"', async () => {
  const page = await Bun.file(join(folder, '../boot.md')).text()
  expect(withKernelParameters(page)).toBe(page)
})

test('every command that is not hidden is in the page of commands', () => {
  const shown = Object.entries(commands).filter(([, { hidden }]) => !hidden)
  expect(shown.map(([name]) => name).filter((name) => !commandsPage.includes(`\n## talosctl ${name}\n`))).toEqual([])
})

test('every resource type is in the page of resources, with a description: the comment at its declaration', () => {
  const types = areas.flatMap(({ resources }) => resources.map(({ type }) => type))
  expect(types.filter((type) => !resources.includes(`\n### ${type}\n`))).toEqual([])
  expect(resources.match(/^### .*\n\n\n/gm)).toBeNull()
})

test('every method is in the page of the API, with a description: the comment in its .proto file', () => {
  const names = servedMethods('metal').map(({ path }) => path.slice(path.indexOf('/') + 1))
  expect(names.filter((name) => !api.includes(`\n| \`${name}\` | `))).toEqual([])
  expect(api.match(/^\| `\w+` \| {2}\|/gm)).toBeNull()
  expect(api.match(/^- \[.*: $/gm)).toBeNull()
})
