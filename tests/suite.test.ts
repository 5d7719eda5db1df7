/** What every test keeps to, so that none passes without having looked. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'

const files = [...new Glob('**/*.ts').scanSync(import.meta.dir)].filter((path) => path !== 'suite.test.ts').sort()
const textOf = (path: string) => readFileSync(join(import.meta.dir, path), 'utf8')

/** Matches of a pattern for which `wrong` holds, as `file:line`. */
function places(found: RegExp, wrong: (text: string, at: number) => boolean): string[] {
  return files.flatMap((path) => {
    const text = textOf(path)
    return [...text.matchAll(found)]
      .filter(({ index }) => wrong(text, index))
      .map(({ index }) => `${path}:${text.slice(0, index).split('\n').length}`)
  })
}

/** Whether the call of `name` that stands last before a place is one whose promise goes nowhere. */
function dropped(name: string, text: string, at: number): boolean {
  const before = text.slice(0, text.lastIndexOf(name, at)).trimEnd()
  return !/(\bawait|\breturn|=>|[[,])$/.test(before)
}

test('a promise that is expected to be fulfilled or rejected is awaited', () => {
  expect(places(/\.(rejects|resolves)\b/g, (text, at) => dropped('expect(', text, at))).toEqual([])
})

test('a property that is checked asynchronously is awaited', () => {
  expect(places(/\bfc\.asyncProperty\(/g, (text, at) => dropped('fc.assert(', text, at))).toEqual([])
})

test('a number of runs is one that FUZZ_RUNS scales', () => {
  expect(places(/\bnumRuns: (?!runs\()/g, () => true)).toEqual([])
})
