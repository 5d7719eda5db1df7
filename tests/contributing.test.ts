/** The page for contributors: its example is built from the page, and the commits that it names are those of the history. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type PageExample, writePageExample } from './support/page-example.ts'

describe('the example of the page', () => {
  let example: PageExample
  beforeAll(async () => {
    example = await writePageExample()
  }, 60_000)
  afterAll(() => example?.[Symbol.dispose]())

  test('has every part that the page describes', () => {
    const folders = ['resources', 'documents', 'controllers', 'api'].map((name) => `src/os/hello/${name}/`)
    for (const folder of [...folders, 'src/programs/talosctl/commands/', 'tests/os/hello/', 'tests/programs/talosctl/'])
      expect(
        example.sources.some((path) => path.startsWith(folder)),
        folder,
      ).toBe(true)
  })

  test('is formatted', async () => {
    const { code, output } = await example.run('node_modules/.bin/biome', 'format', ...example.sources)
    expect(code, output).toBe(0)
  })

  test('has its pages and messages generated, is registered, and passes its tests', async () => {
    const generated = ['proto/generate.ts', 'docs/generate.ts'].map((script) => example.run(process.execPath, script))
    for (const { code, output } of await Promise.all(generated)) expect(code, output).toBe(0)
    const own = example.sources.filter((path) => path.endsWith('.test.ts')).map((path) => `./${path}`)
    const whole = ['registration', 'os/api-surface', 'os/config/schema', 'os/config/reference'].map((name) => `./tests/${name}.test.ts`)
    // One process loads the modules once. Of the two long files only what the feature changes runs: its own keys, and the table.
    const long = ['./tests/os/config/acting.test.ts', './tests/programs/apid/roles-walk.test.ts']
    const left = '^(?!every key of (?!HelloConfig )|no reason is given |apid |a machine that )'
    const { code, output } = await example.run(process.execPath, 'test', ...own, ...whole, ...long, '-t', left)
    expect(code, output).toBe(0)
    for (const title of ['every key of HelloConfig acts', 'the table names every method']) expect(output).toContain(title)
  }, 60_000)
})

const git = (...args: string[]) =>
  Bun.spawnSync(['git', ...args], { cwd: import.meta.dir })
    .stdout.toString()
    .trim()

// An archive of the source has no history, and a shallow clone only the end of it.
describe.skipIf(git('rev-parse', '--is-shallow-repository') !== 'false')('a commit that the page names', () => {
  const page = readFileSync(join(import.meta.dir, '../docs/contributing.md'), 'utf8')
  const named = [...page.matchAll(/\| `([0-9a-f]{7,})` ([^|]+) \|/g)].map(([, hash = '', subject = '']) => [hash, subject] as const)

  test.each(named)('%s has the subject "%s"', (hash, subject) => {
    expect(git('log', '-1', '--format=%s', hash)).toBe(subject)
  })
})
