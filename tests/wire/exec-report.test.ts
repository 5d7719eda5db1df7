import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { describeExecReport, type ExecReport, formatExecReport, parseExecReports } from '../../src/wire/exec-report.ts'

const clamped: ExecReport = { kind: 'clamped', what: 'oom score', wanted: -998, got: 0, reason: 'it may not be lowered here' }
const failed: ExecReport = { kind: 'failed', message: 'execve "/nope": ENOENT', code: 127 }

test('reports round-trip, and truncated or foreign lines are skipped', () => {
  const text = `${formatExecReport(clamped)}noise\n{"kind":"clamped"}\nnull\n${formatExecReport(failed)}{"kind":"fai`
  expect(parseExecReports(text)).toEqual([clamped, failed])
  expect(describeExecReport(clamped)).toBe('oom score -998 clamped to 0: it may not be lowered here')
})

test('any text parses', () => {
  fc.assert(fc.property(fc.string(), (text) => void parseExecReports(text)))
  fc.assert(fc.property(fc.json(), (text) => void parseExecReports(text)))
})
