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

test('with a separator only two stars cross it', () => {
  expect(matchesWildcard('registry.k8s.io/*', 'registry.k8s.io/pause', '/')).toBe(true)
  expect(matchesWildcard('registry.k8s.io/*', 'registry.k8s.io/a/b', '/')).toBe(false)
  expect(matchesWildcard('registry.k8s.io/**', 'registry.k8s.io/a/b', '/')).toBe(true)
  expect(matchesWildcard('a?b', 'a/b', '/')).toBe(false)
})

test('matches what the same regular expression does', () => {
  const short = fc.array(fc.constantFrom('a', 'b', '/', '*', '?', '.'), { maxLength: 7 }).map((units) => units.join(''))
  fc.assert(
    fc.property(short, short, fc.constantFrom('', '/'), (pattern, text, separator) => {
      const one = separator ? '[^/]' : '[\\s\\S]'
      const source = pattern.replace(/\*\*|[\s\S]/g, (part) => {
        if (part === '**' && separator) return '[\\s\\S]*'
        if (part === '**') return `${one}*`
        return part === '*' ? `${one}*` : part === '?' ? one : RegExp.escape(part)
      })
      expect(matchesWildcard(pattern, text, separator)).toBe(new RegExp(`^(?:${source})$`).test(text))
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
