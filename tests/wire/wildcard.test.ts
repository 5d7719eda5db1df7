import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { matchesStars, matchesWildcard } from '../../src/wire/wildcard.ts'
import { runs } from '../support/runs.ts'

test('a star stands for any characters, a question mark for one', () => {
  expect(matchesWildcard('sd*', 'sda')).toBe(true)
  expect(matchesWildcard('sd?', 'sda')).toBe(true)
  expect(matchesWildcard('sd?', 'sd')).toBe(false)
  expect(matchesWildcard('', '')).toBe(true)
  expect(matchesWildcard('a.c', 'abc')).toBe(false)
  expect(matchesWildcard('*', 'a/b\nc')).toBe(true)
})

test('matches what the same regular expression does', () => {
  const short = fc.array(fc.constantFrom('a', 'b', '/', '*', '?', '.'), { maxLength: 7 }).map((units) => units.join(''))
  const parts: Record<string, string> = { '*': '[\\s\\S]*', '?': '[\\s\\S]' }
  fc.assert(
    fc.property(short, short, (pattern, text) => {
      const source = pattern.replace(/[\s\S]/g, (part) => parts[part] ?? RegExp.escape(part))
      expect(matchesWildcard(pattern, text)).toBe(new RegExp(`^(?:${source})$`).test(text))
    }),
    { numRuns: runs(500) },
  )
})

test('of patterns in which only the star is special, every other character stands for itself', () => {
  const fits = (pattern: string, text: string) => matchesStars(pattern, text)
  for (const [pattern, text] of [
    ['', ''],
    ['*', ''],
    ['a*', 'abc'],
    ['*c', 'abc'],
    ['a*b*c', 'aXbXbYc'],
    ['a?[b]', 'a?[b]'],
    ['/dev/*', '/dev/disk/by-id/x'],
    ['**a**', 'xax'],
  ] as const)
    expect([pattern, text, fits(pattern, text)]).toEqual([pattern, text, true])
  for (const [pattern, text] of [
    ['', 'a'],
    ['a', 'ab'],
    ['a*b*c', 'aXbXbY'],
    ['ab*ba', 'aba'],
    ['a?c', 'abc'],
    ['nvme*', '/dev/nvme0'],
  ] as const)
    expect([pattern, text, fits(pattern, text)]).toEqual([pattern, text, false])
})
