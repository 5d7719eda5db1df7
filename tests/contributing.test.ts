/** The page for contributors: the commits that it names are those of the history. Its example is built by tests/example.ts. */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

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
