import { expect, test } from 'bun:test'
import { LineCounter, parseDocument } from 'yaml'
import { duplicateKey } from '../../src/document/unique-keys.ts'

function judge(text: string): string | undefined {
  const lines = new LineCounter()
  return duplicateKey(parseDocument(text, { uniqueKeys: false, lineCounter: lines }), lines)
}

test('a duplicate key of a map is reported with its position', () => {
  expect(judge('a: 1\nb: {c: 1, c: 2}\n')).toBe('duplicate key "c" at line 2, column 11')
  expect(judge('a: {x: 1}\nb: {x: 1}\nc: [{x: 1}, {x: 2}]\n')).toBeUndefined()
})

test('40,000 keys of one map take no more than two seconds of processor time', () => {
  const text = Array.from({ length: 40_000 }, (_, index) => `k${index}: 1\n`).join('')
  const before = process.threadCpuUsage()
  expect(judge(text)).toBeUndefined()
  const { user, system } = process.threadCpuUsage(before)
  expect((user + system) / 1e6).toBeLessThan(2)
})
