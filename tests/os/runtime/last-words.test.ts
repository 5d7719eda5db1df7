import { expect, test } from 'bun:test'
import { lastWords } from '../../../src/os/runtime/explain/last-words.ts'

test('the line that says why comes through a page of help', () => {
  const help =
    '  --logging-format string   format of errors\nGlobal flags:\n  -h, --help   help for kube-scheduler\nError: unknown flag: --nope\n'
  expect(lastWords(help)).toBe('Error: unknown flag: --nope')
})

test('of a log the last errors are taken, in their order', () => {
  const log = [
    'I1121 21:24:10 start',
    'E1121 21:24:08 one',
    'E1121 21:24:09 two',
    'I1121 21:24:10 stop',
    'E1121 21:24:10 three',
    'F1121 21:24:11 four',
    'I1121 end',
  ]
  expect(lastWords(log.join('\n'))).toBe('E1121 21:24:09 two\nE1121 21:24:10 three\nF1121 21:24:11 four')
})

test('words that are likely do where none is certain, and else the last lines', () => {
  expect(lastWords('starting\nlisten tcp :80: permission denied\nbye')).toBe('listen tcp :80: permission denied')
  expect(lastWords('a\nb\nc\nd\n')).toBe('b\nc\nd')
  expect(lastWords('')).toBe('')
})
