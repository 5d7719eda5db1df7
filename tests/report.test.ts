import { expect, test } from 'bun:test'
import { readReport, reasonsOf } from './report.ts'

test('the tests of a report are read with what became of them', () => {
  const xml = `<testsuites><testsuite name="a">
    <testcase name="one &amp; two" classname="x" time="0.5" file="a.ts" />
    <testcase name="three" time="1"><failure type="AssertionError" /></testcase>
    <testcase name="four" time="0"><skipped /></testcase></testsuite></testsuites>`
  expect(readReport(xml)).toEqual([
    { name: 'one & two', result: 'passed', seconds: 0.5 },
    { name: 'three', result: 'failed', seconds: 1 },
    { name: 'four', result: 'skipped', seconds: 0 },
  ])
})

test('the output of failed tests is extracted', () => {
  const output = [
    'a.test.ts:',
    '(pass) fine [1ms]',
    'error: one',
    'error: two',
    '(fail) broken [2ms]',
    '(pass) fine too',
    'error',
    '(fail) more',
  ]
  expect(reasonsOf(output.join('\n'), 2)).toEqual(['error: two\n(fail) broken [2ms]', 'error\n(fail) more'])
})
