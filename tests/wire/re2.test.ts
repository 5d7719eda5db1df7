import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { PatternError } from '../../src/wire/re2/parse.ts'
import { Re2 } from '../../src/wire/re2/re2.ts'
import { runs } from '../support/runs.ts'

const matches = (pattern: string, text: string) => new Re2(pattern).test(text)

/** What Go's regexp.MatchString answers. */
const known: [pattern: string, matching: string[], others: string[]][] = [
  ['', ['', 'a'], []],
  ['^eth[0-9]+$', ['eth0', 'eth12'], ['eth', 'xeth0', 'eth0x', 'eth0\n']],
  ['a.c', ['abc', 'a😀c', 'xaxc'], ['ac', 'a\nc']],
  ['(?s)a.c', ['a\nc'], ['ac']],
  ['^(?:abc|abd|)x$', ['abcx', 'abdx', 'x'], ['abx', 'abex']],
  ['^a{2,3}$', ['aa', 'aaa'], ['a', 'aaaa']],
  ['^a{2,}$', ['aa', 'aaaaa'], ['a']],
  ['^a{2}?$', ['aa'], ['a', 'aaa']],
  ['^a{,2}$', ['a{,2}'], ['a', 'aa']],
  ['^(a|ab)(c|bcd)*$', ['abcd', 'ac', 'abc', 'a'], ['abd']],
  ['(?i)Straße', ['STRAßE', 'straße'], ['strase']],
  ['^(?i:a)b$', ['Ab', 'ab'], ['aB']],
  ['(?i)ω', ['Ω', 'ω'], ['w']],
  ['(?im)^x$', ['a\nX\nb'], ['ax']],
  ['(?i)a(?-i)b', ['Ab'], ['AB']],
  ['\\bcat\\b', ['a cat.', 'cat'], ['cats', 'scat']],
  ['\\Bcat', ['scat'], ['cat', ' cat']],
  ['\\Aa\\z', ['a'], ['ab', 'a\n']],
  ['^\\d\\D\\w\\W\\s\\S$', ['1a_- x'], ['aa_- x', '1a_a x']],
  ['^[^a-c]$', ['d', '😀', '\n'], ['a', 'b', '']],
  ['^[]a]$', [']', 'a'], ['b']],
  ['^[a-]$', ['a', '-'], ['b']],
  ['^[-a]$', ['a', '-'], ['b']],
  ['^[\\w.]+$', ['a.b'], ['a-b']],
  ['^[[:alpha:][:^word:]]+$', ['aZ-'], ['1']],
  ['^(?P<name>a)(?<other>b)$', ['ab'], ['a']],
  ['^\\x41\\x{1F600}\\101\\.\\n$', ['A😀A.\n'], ['A']],
  ['^(a*)*$', ['', 'aaa'], ['b']],
  ['^(|a)+$', ['', 'aaa'], ['b']],
  ['^(^|a)+b$', ['b', 'aab'], ['ba']],
  ['x*', ['', 'y'], []],
]

describe('patterns', () => {
  test.each(known)('%s match as in Go', (pattern, matching, others) => {
    expect(matching.filter((text) => !matches(pattern, text))).toEqual([])
    expect(others.filter((text) => matches(pattern, text))).toEqual([])
  })

  test.each([
    ['(a', 'missing closing ): `(a`'],
    ['a)', 'unexpected ): `a)`'],
    ['[a', 'missing closing ]: `[a`'],
    ['[b-a]', 'invalid character class range: `b-a`'],
    ['[[:nothing:]]', 'invalid character class range: `[:nothing:]`'],
    ['*a', 'missing argument to repetition operator: `*`'],
    ['a|+', 'missing argument to repetition operator: `+`'],
    ['a**', 'invalid nested repetition operator: `**`'],
    ['a{1001}', 'invalid repeat count: `{1001}`'],
    ['a{2,1}', 'invalid repeat count: `{2,1}`'],
    ['(a{100}){11}', 'invalid repeat count: `(a{100}){11}`'],
    ['(?=a)', 'invalid or unsupported Perl syntax: `(?=`'],
    ['(a)\\1', 'invalid escape sequence: `\\1`'],
    ['\\pL', 'invalid escape sequence: `\\p`'],
    ['\\x{110000}', 'invalid escape sequence: `\\x{110000}`'],
    ['a\\', 'trailing backslash at end of expression: ``'],
    ['(((a{9}){9}){9}b{1000}){1}b{1000}b{1000}b{1000}', 'expression is too large: `(((a{9}){9}){9}b{1000}){1}b{1000}b{1000}b{1000}`'],
    [`${'('.repeat(300)}${')'.repeat(300)}`, `expression nests too deeply: \`${'('.repeat(300)}${')'.repeat(300)}\``],
  ])('%s are refused, naming the fault', (pattern, message) => {
    expect(() => new Re2(pattern)).toThrow(
      new PatternError(message.slice(0, message.indexOf(': `')), message.slice(message.indexOf('`') + 1, -1)),
    )
  })
})

const letter = fc.constantFrom('a', 'b', 'c', '1', '_', '-', ' ', '\n', 'é', '😀')
const escaped = (text: string) => text.replace(/[-^$\\.*+?()[\]{}|/]/, '\\$&')
const atom = fc.oneof(
  letter.map((one) => (one === '-' ? one : escaped(one))),
  fc.constantFrom('.', '^', '$', '\\b', '\\B', '\\d', '\\D', '\\w', '\\W', '[ab]', '[^ab]', '[a-c1]', '[^\\d]', '[\\w é]'),
)
const pattern = fc.letrec<{ node: string; sequence: string; group: string }>((tie) => ({
  node: fc.oneof({ maxDepth: 2, withCrossShrink: true }, { weight: 3, arbitrary: atom }, { weight: 1, arbitrary: tie('group') }),
  group: fc
    .tuple(fc.array(tie('sequence'), { minLength: 1, maxLength: 2 }), fc.constantFrom('(', '(?:'))
    .map(([choices, open]) => `${open}${choices.join('|')})`),
  sequence: fc
    .array(fc.tuple(tie('node'), fc.constantFrom('', '', '', '*', '+', '?', '*?', '{2}', '{0,2}', '{1,}')), { maxLength: 3 })
    // JavaScript repeats no assertions.
    .map((parts) => parts.map(([node, times]) => (/^(\^|\$|\\b|\\B)$/.test(node) ? node : node + times)).join('')),
})).sequence

test('a pattern with the same meaning in JavaScript matches the same texts', () => {
  fc.assert(
    fc.property(pattern, fc.array(letter, { maxLength: 8 }), (expression, letters) => {
      const text = letters.join('')
      expect([expression, text, matches(expression, text)]).toEqual([expression, text, new RegExp(expression, 'u').test(text)])
    }),
    { numRuns: runs(5000), seed: 20_261_123 },
  )
})

test('any text is a pattern or a PatternError', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[a(|)*+?{}[\]\\^$.,0-9:<>Pims-]{0,30}$/)), fc.string(), (expression, text) => {
      try {
        expect(typeof matches(expression, text)).toBe('boolean')
      } catch (error) {
        expect(error).toBeInstanceOf(PatternError)
      }
    }),
    { numRuns: runs(3000), seed: 20_261_123 },
  )
})

test.each(['(a+)+$', '(.|.)*!', '((.+))+!', '.*.*.*.*.*.*.*!', '(\\w+|x)*!', '(a|aa)+!', '(a|a?)+!', '(.*){9}!', '([a-z]+)*=', '(a*)*b'])(
  'the time for %s grows with the text and no faster',
  (expression) => {
    const compiled = new Re2(expression)
    const cost = (length: number) => {
      const before = compiled.steps
      expect(compiled.test(`${'a'.repeat(length)}\n`)).toBe(false)
      return compiled.steps - before
    }
    const [short, long] = [cost(1000), cost(4000)]
    expect(long).toBeLessThan(4.1 * short)
    const start = process.cpuUsage()
    cost(1500)
    const { user, system } = process.cpuUsage(start)
    expect(user + system).toBeLessThan(50_000)
  },
)
