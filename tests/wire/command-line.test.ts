import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { parameterValues, parseCommandLine } from '../../src/wire/command-line.ts'

test('parameters are separated by blanks, values are everything after the first equals sign', () => {
  expect(parseCommandLine('ro  console=ttyS0,115200 talos.config=http://a/b?c=d\n')).toEqual([
    { name: 'ro', value: '' },
    { name: 'console', value: 'ttyS0,115200' },
    { name: 'talos.config', value: 'http://a/b?c=d' },
  ])
})

test('quotes protect blanks, in any position', () => {
  expect(parseCommandLine('a="b c" "d=e f" g')).toEqual([
    { name: 'a', value: 'b c' },
    { name: 'd', value: 'e f' },
    { name: 'g', value: '' },
  ])
})

test('arguments after two dashes are for another program', () => {
  expect(parameterValues(parseCommandLine('x=1 x=2 -- x=3'), 'x')).toEqual(['1', '2'])
})

test('any text parses', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 400 }), (text) => {
      for (const { name, value } of parseCommandLine(text)) expect(name + value).not.toMatch(/^\s+$/)
    }),
  )
})
