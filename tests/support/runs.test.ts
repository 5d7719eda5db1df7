import { expect, test } from 'bun:test'
import { percentOf, runs, sample } from './runs.ts'

test('properties run a tenth of their full number by default, all of it on request, and more', () => {
  expect([undefined, '', '100', '2000'].map(percentOf)).toEqual([10, 10, 100, 2000])
  expect([60, 25, 3].map((full) => runs(full, 10))).toEqual([6, 5, 3])
  expect([60, 25, 3].map((full) => runs(full, 100))).toEqual([60, 25, 3])
  expect(runs(60, 250)).toBe(150)
})

test.each(['0', '-1', '1e3', '0.5', 'full'])('FUZZ_RUNS=%s is refused', (text) => {
  expect(() => percentOf(text)).toThrow('takes a whole number of percent')
})

test('a sample is spread over all cases, and is all of them at full strength', () => {
  const all = Array.from({ length: 60 }, (_, index) => index)
  expect(sample(all, { wanted: 10 })).toEqual([0, 10, 20, 30, 40, 50])
  expect(sample(all, { wanted: 100 })).toEqual(all)
  expect(sample(all, { wanted: 300 })).toEqual(all)
  expect(sample([1, 2], { wanted: 10 })).toEqual([1, 2])
  expect(sample(all, { wanted: 1, fewest: 2 })).toEqual([0, 30])
})
