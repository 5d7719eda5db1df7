/** The rules that this project adds to the linter: each rejects what it is for, and nothing else. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Glob } from 'bun'
import configuration from '../../biome.json'

const repository = join(import.meta.dir, '../..')
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'ichor-style-'))
  const plugins = configuration.plugins.map((path) => join(repository, path))
  await Bun.write(join(folder, 'biome.json'), JSON.stringify({ root: true, plugins, linter: { rules: { preset: 'none' } } }))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** The pieces of code, one a line, that the linter rejects with the message. */
async function rejectedBy(message: string, code: readonly string[]): Promise<string[]> {
  const file = join(folder, 'example.ts')
  await Bun.write(file, code.map((line) => `${line}\n`).join(''))
  const run = Bun.spawnSync([join(repository, 'node_modules/.bin/biome'), 'lint', `--config-path=${folder}`, '--reporter=github', file])
  const found = `${run.stdout}`.matchAll(/^::error .*?,line=(\d+),.*?::(.*)$/gm)
  return [...found].flatMap(([, line, text]) => (text === message ? [code[Number(line) - 1] ?? ''] : []))
}

describe('an optional property', () => {
  const message = 'Spread an optional property as ...(condition && { key: value }).'

  test('is spread in one way', async () => {
    const rejected = [
      'use({ ...(x ? { x } : {}) })',
      'use({ ...(x === undefined ? {} : { x }), other })',
      'use({ other, ...(x ? { x } : undefined) })',
      'use({ ...(x === undefined ? undefined : { x }) })',
      'use({ ...(other || {}) })',
      'use({ ...(other ?? {}) })',
    ]
    const allowed = [
      'use({ ...(x && { x }) })',
      'use({ ...(x ? { x } : { none: 1 }) })',
      'use([...(x ? [x] : [])])',
      'use([...(list ?? [])])',
    ]
    expect(await rejectedBy(message, [...rejected, ...allowed])).toEqual(rejected)
  })
})

describe('a constant', () => {
  const message =
    'Name a constant in camelCase; only names from headers keep their capitals (tests/style/constant-case.grit lists their prefixes).'

  test('has capitals only if a header names it', async () => {
    const rejected = [
      'const MAX_DELAY = 1',
      'export const TIMEOUT = 1',
      'const USAGE = 1, limit = 2',
      'function f() { const GIB = 1; return GIB }',
    ]
    const allowed = [
      'const maxDelay = 1',
      'const ENOENT = 2',
      'const O_PATH = 1',
      'const IFLA = {}',
      'const { RUNNING } = status',
      'const Greeting = 1',
    ]
    expect(await rejectedBy(message, [...rejected, ...allowed])).toEqual(rejected)
  })
})

test('the code of a failed system call is compared by failedWith and shown by codeOf', () => {
  const files = ['src', 'rootfs', 'bench'].flatMap((folder) => [...new Glob(`${folder}/**/*.ts`).scanSync(repository)])
  expect(files.length).toBeGreaterThan(1000)
  expect(files.filter((file) => readFileSync(join(repository, file), 'utf8').includes('ErrnoException'))).toEqual([])
})
