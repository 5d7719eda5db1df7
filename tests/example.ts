/**
 * Builds the example of docs/contributing.md in a copy of the source, as a newcomer would: its format, what is generated from it, its
 * types and its tests. A part of `bun run check`.
 */
import { join } from 'node:path'
import { writePageExample } from './support/page-example.ts'

/** Where the page puts each part. */
const folders = [
  ...['resources', 'documents', 'controllers', 'api'].map((name) => `src/os/hello/${name}/`),
  ...['src/programs/talosctl/commands/', 'tests/os/hello/', 'tests/programs/talosctl/'],
]
/** Tests that judge all features. Of the two long files only what the example changes runs: its own keys, and the table. */
const judging = [
  'registration',
  'os/api-surface',
  'os/config/schema',
  'os/config/reference',
  'os/config/acting',
  'programs/apid/roles-walk',
]
const left = '^(?!every key of (?!HelloConfig )|no reason is given |apid |a machine that )'
const titles = ['every key of HelloConfig acts', 'the table names every method']

using example = await writePageExample()
const own = example.sources.filter((path) => path.endsWith('.test.ts')).map((path) => `./${path}`)
const config = { extends: './tsconfig.json', include: [], files: [...example.sources, 'src/text.d.ts'] }
await Bun.write(join(example.folder, 'tsconfig.example.json'), JSON.stringify(config))

/** Runs a step; its output, or what is wrong. */
async function step(...argv: string[]): Promise<string> {
  const { code, output } = await example.run(...argv)
  if (code !== 0) throw new Error(output)
  return output
}

try {
  for (const folder of folders)
    if (!example.sources.some((path) => path.startsWith(folder))) throw new Error(`the page has nothing for ${folder}`)
  await step('node_modules/.bin/biome', 'format', ...example.sources)
  await Promise.all(['proto/generate.ts', 'docs/generate.ts'].map((script) => step(process.execPath, script)))
  await step('node_modules/.bin/tsc', '-p', 'tsconfig.example.json')
  const output = await step(process.execPath, 'test', ...own, ...judging.map((name) => `./tests/${name}.test.ts`), '-t', left)
  for (const title of titles) if (!output.includes(title)) throw new Error(`"${title}" did not run:\n${output}`)
} catch (error) {
  console.error(`the example of docs/contributing.md: ${(error as Error).message}`)
  process.exitCode = 1
}
