import { expect, test } from 'bun:test'
import { formatFor, takesGzip } from '../../../src/programs/metricsd/accept.ts'

test.each([
  ['', 'text'],
  ['*/*', 'text'],
  ['text/plain', 'text'],
  ['application/openmetrics-text', 'openmetrics'],
  ['application/openmetrics-text; version=1.0.0', 'openmetrics'],
  ['application/openmetrics-text; version="0.0.1"', 'openmetrics'],
  ['application/openmetrics-text; version=2.0.0', 'text'],
  ['application/openmetrics-text; q=0', 'text'],
  ['application/openmetrics-text;q=0.5,text/plain;q=0.8', 'text'],
  [
    'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
    'openmetrics',
  ],
  ['Application/OpenMetrics-Text; Q=nonsense', 'text'],
] as const)('Accept: %s', (accept, format) => {
  expect(formatFor(accept)).toBe(format)
})

test('gzip is for clients that take it', () => {
  expect(['gzip', 'deflate, gzip;q=0.5', '*'].map(takesGzip)).toEqual([true, true, true])
  expect(['', 'identity', 'gzip;q=0', 'br'].map(takesGzip)).toEqual([false, false, false, false])
})
