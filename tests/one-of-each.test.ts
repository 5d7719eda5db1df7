/** Small tools exist once: what a second one would be made of appears only where the first one is. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'

const repository = join(import.meta.dir, '..')
const files = ['src', 'rootfs', 'docs']
  .flatMap((folder) => [...new Glob(`${folder}/**/*.ts`).scanSync(repository)])
  .filter((path) => !path.endsWith('.d.ts'))
  .sort()

const codeOf = (path: string): string =>
  readFileSync(join(repository, path), 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|\s)\/\/.*$/gm, '')

/** For each tool what gives one away, and the files that may have it. */
const tools: Record<string, { readonly sign: RegExp; readonly home: readonly string[] }> = {
  'a wait for a time, or until an abort': {
    sign: /Bun\.sleep\(|new Promise(?:<\w+>)?\(\(?(\w+)\)? => (?:void )?setTimeout\(\1\b/,
    home: [],
  },
  'a time limit of a promise': {
    sign: /setTimeout\(\(\) => reject\(/,
    // The device that does not answer is waited for in two places at once.
    home: ['src/os/block/controllers/discovery.ts', 'src/timing/within.ts'],
  },
  'host and port': { sign: /replace\(\/\^\\\[\(|\\\]\)?\(\?::\(/, home: ['src/wire/host-port.ts'] },
  durations: { sign: /ns\|us\||\|ms\|s\|m\|h/, home: ['src/wire/duration.ts'] },
  tar: { sign: /'ustar|\(124, 13[56]\)/, home: ['src/wire/tar/read.ts', 'src/wire/tar/write.ts'] },
  'the message of an error': { sign: /instanceof Error \? \w+\.message : String\(/, home: ['src/wire/error-message.ts'] },
  TOML: { sign: /Bun\.TOML/, home: ['src/os/cri/toml.ts'] },
  'the nearest name': { sign: /levenshtein|editDistance|transposed/i, home: ['src/document/nearest.ts'] },
}

test.each(Object.entries(tools))('%s', (_, { sign, home }) => {
  expect(files.filter((path) => sign.test(codeOf(path)))).toEqual([...home])
})
