import { expect, test } from 'bun:test'
import { parseCpus, parseMemory } from '../../../../../src/programs/talosctl/cluster/plan/quantity.ts'

test.each([
  ['2.0GiB', 2 * 1024 ** 3],
  ['2GB', 2e9],
  ['2048', 2048 * 1024 ** 2],
  ['2048mb', 2048e6],
  ['1.5 gib', 1.5 * 1024 ** 3],
])('%s of memory', (text, bytes) => {
  expect(parseMemory(text, '--memory')).toBe(bytes)
})

test.each([
  ['2.0', 2000],
  ['0.5', 500],
  ['1500m', 1500],
])('%s processors', (text, milli) => {
  expect(parseCpus(text, '--cpus')).toBe(milli)
})

test.each(['', 'lots', '2TB', '-1GiB', '1e9'])('"%s" is no amount of memory', (text) => {
  expect(() => parseMemory(text, '--memory')).toThrow(`--memory "${text}": write an amount of memory such as 2GiB or 2048MB`)
})

test.each(['', 'all', '0', '-1', '2.0.0'])('"%s" is no number of processors', (text) => {
  expect(() => parseCpus(text, '--cpus')).toThrow(`--cpus "${text}": write a number of processors such as 2.0 or 1500m`)
})
