import { expect, test } from 'bun:test'
import { exactly, readSpecs } from './suite.ts'

const spec = (LeafNodeText: string, State: string, Message?: string) => ({
  ContainerHierarchyTexts: ['[sig-node] Pods'],
  LeafNodeType: 'It',
  LeafNodeText,
  State,
  RunTime: 2_500_000_000,
  ...(Message !== undefined && { Failure: { Message } }),
})

test('a report lists the chosen tests; one that skips itself did not pass', () => {
  const set = { ContainerHierarchyTexts: null, LeafNodeType: 'SynchronizedBeforeSuite', LeafNodeText: '', State: 'passed', RunTime: 1 }
  const SpecReports = [
    set,
    spec('run', 'passed'),
    spec('other', 'skipped'),
    spec('swap', 'skipped', 'no swap'),
    spec('end', 'failed', 'a\nb'),
  ]
  expect(readSpecs(JSON.stringify([{ SpecReports }]))).toEqual([
    { name: '[sig-node] Pods run', passed: true, seconds: 2.5, reason: 'passed: ' },
    { name: '[sig-node] Pods swap', passed: false, seconds: 2.5, reason: 'skipped: no swap' },
    { name: '[sig-node] Pods end', passed: false, seconds: 2.5, reason: 'failed: a' },
  ])
})

test('a name is found as it is written', () => {
  const name = '[sig-storage] EmptyDir (non-root,0644,default) a.b*'
  expect(new RegExp(exactly(name)).test(`suite ${name}`)).toBe(true)
  expect(new RegExp(exactly(name)).test(name.replace('.', '-'))).toBe(false)
})
