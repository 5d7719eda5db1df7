/** The table of docs/architecture.md that states why something is implemented here and not taken from a package. */
import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const repository = join(import.meta.dir, '..')
const page = readFileSync(join(repository, 'docs/architecture.md'), 'utf8')
const section = /^## Dependencies, and what is implemented here instead\n(.*?)(?=^## |$(?![\s\S]))/ms.exec(page)?.[1] ?? ''
const rows = section.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| what '))
const paths = rows.flatMap((row) => [...(row.split('|')[2] ?? '').matchAll(/`([^`]+)`/g)].map(([, path = '']) => path))

/** Folders whose every file is part of a format or protocol, and what in them is not. */
const codecs = { 'src/wire': ['api-status.ts', 'bounded-body.ts', 'decode-error.ts', 'error-message.ts'] }

test('every row has a place and a reason', () => {
  expect(rows.length).toBeGreaterThan(40)
  for (const row of rows) expect(row).toMatch(/^\| [^|]+ \| `[^|]+` \| [A-Za-z][^|]+\. \|$/)
})

test('every place exists', () => {
  expect(paths.filter((path) => !existsSync(join(repository, path)))).toEqual([])
})

test('every format and protocol is in the table', () => {
  const listed = (path: string) => paths.some((each) => each === path || (each.endsWith('/') && path.startsWith(each)))
  const missing = Object.entries(codecs).flatMap(([folder, others]) =>
    readdirSync(join(repository, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !others.includes(entry.name))
      .map((entry) => relative(repository, join(entry.parentPath, entry.name)))
      .filter((path) => !listed(path)),
  )
  expect(missing).toEqual([])
})
