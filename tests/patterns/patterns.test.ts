/** Every regular expression of the sources: none may take long over any text, since most of them see what others wrote. */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { ambiguityOf, pumpsOf } from './ambiguity.ts'
import { type Pattern, patternsOf } from './sources.ts'

const source = join(import.meta.dir, '../../src')
const found = [...new Glob('**/*.ts').scanSync(source)].sort().map((file) => patternsOf(file, readFileSync(join(source, file), 'utf8')))
const literals = [...new Map(found.flatMap(({ literals }) => literals).map((one) => [`/${one.source}/${one.flags}`, one])).values()]
const named = ({ file, line, source, flags }: Pattern) => `${file}:${line} /${source}/${flags}`

/** Files that compile regular expressions at run time, and why they may. */
const compiling: Record<string, string> = {
  'programs/talosctl/support/redact.ts': 'joins constants, on the side of the operator',
}

/** Milliseconds of the processor that one match of 1,500 characters may take. */
const bound = 50

function processorTime(run: () => void): number {
  const before = process.threadCpuUsage()
  run()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

describe('regular expressions', () => {
  test('of the sources are all found', () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
    const text = 'a = b / c / d; x.replace(/[/"]`/g, `${y / 2 / {a: 1}.a}${/t\\/u/.exec(`/no/`)}`); /* /no/ */ return /"/y // /no/'
    expect(patternsOf('', text).literals.map(({ source, flags }) => `/${source}/${flags}`)).toEqual(['/[/"]`/g', '/t\\/u/', '/"/y'])
    expect(patternsOf('', 'new RegExp(a); RegExp (b); RegExp.escape(c); let d: RegExp').constructions).toHaveLength(2)
    expect(literals.length).toBeGreaterThan(300)
  })

  test('match a text in one way, or in a bounded number of ways', () => {
    expect(literals.filter(({ source, flags }) => ambiguityOf(source, flags) !== 'none').map(named)).toEqual([])
  })

  test('are linear enough for 1,500 characters that they repeat', () => {
    const slow = literals.flatMap((pattern) => {
      const expression = new RegExp(pattern.source, pattern.flags.replace('g', ''))
      return pumpsOf(pattern.source, pattern.flags).flatMap(({ prefix, part }) =>
        [26, 900, 1500].flatMap((times) => {
          const text = prefix + part.repeat(Math.ceil(times / part.length))
          const spent = Math.max(...[text, `${text}\0`].map((each) => processorTime(() => expression.test(each))))
          return spent > bound ? [`${named(pattern)}: ${Math.round(spent)} ms for ${times} × "${part}"`] : []
        }),
      )
    })
    expect(slow).toEqual([])
  })

  test('are not compiled at run time: their text could come from outside', () => {
    const where = found.flatMap(({ constructions }) => constructions).filter(({ file }) => !(file in compiling))
    expect(where.map(({ file, line }) => `${file}:${line}`)).toEqual([])
  })
})

describe('the judgement of ambiguity', () => {
  test.each([
    ['^[a-z0-9_]([a-z0-9_-]{0,62}\\.?)*$', 'exponential'],
    ['(a+)+$', 'exponential'],
    ['(a*)*b', 'exponential'],
    ['(.|.)*!', 'exponential'],
    ['(a|aa)+!', 'exponential'],
    ['(\\w+|x)*!', 'exponential'],
    ['(?=(a+)+b)c', 'exponential'],
    ['.*.*!', 'polynomial'],
    ['^\\s*x?\\s*$', 'polynomial'],
    ['^[a-z]+(\\.[a-z]+)*$', 'none'],
    ['^"(?:[^"\\\\]|\\\\.)*"', 'none'],
    ['^\\d{1,3}(\\.\\d{1,3}){3}$', 'none'],
    ['^(a|b|ab)c$', 'none'],
  ])('/%s/ is ambiguous: %s', (pattern, expected) => {
    expect(ambiguityOf(pattern, '')).toBe(expected as never)
  })
})
