import { expect, test } from 'bun:test'
import { kernelMessage } from '../../../../src/os/telemetry/shipping/kernel-message.ts'

test.each([
  [0, 3, { facility: 'kern', priority: 'err', 'talos-level': 'error' }],
  [3, 4, { facility: 'daemon', priority: 'warning', 'talos-level': 'warn' }],
  [10, 5, { facility: 'authpriv', priority: 'notice', 'talos-level': 'info' }],
  [17, 7, { facility: 'local1', priority: 'debug', 'talos-level': 'debug' }],
])('a record has the words of facility %d and severity %d', (facility, severity, words) => {
  const record = { facility, severity, sequence: 7, timestamp: 1_500_000, message: 'eth0: link up', tags: {} }
  const bootedAt = Date.parse('2026-11-24T10:00:00Z')
  expect(JSON.parse(kernelMessage(record, bootedAt))).toEqual({
    ...words,
    msg: 'eth0: link up',
    seq: 7,
    clock: 1_500_000,
    'talos-time': '2026-11-24T10:00:01.500Z',
  })
})
