import { describe, expect, test } from 'bun:test'
import { serviceMessage } from '../../../../src/os/telemetry/shipping/service-message.ts'

const now = new Date('2026-11-24T10:00:00.5Z')
const message = (line: string, more: { tags?: Record<string, string>; cut?: boolean } = {}) =>
  JSON.parse(serviceMessage(line, { service: 'etcd', tags: {}, now, ...more }))
const plain = { 'talos-time': '2026-11-24T10:00:00.500Z', 'talos-level': 'info', 'talos-service': 'etcd' }

describe('a line becomes an object:', () => {
  test.each([
    ['text', 'a line', { ...plain, msg: 'a line' }],
    ['text with a brace', 'a {line', { ...plain, msg: 'a {line' }],
    ['text in braces', 'a {line}', { ...plain, msg: 'a {line}' }],
    ['an object', '{"msg":"m","a":{"b":1}}', { ...plain, msg: 'm', a: { b: 1 } }],
    ['an object behind text', 'text {"msg":"m","a":1}', { ...plain, msg: 'text m', a: 1 }],
    ['a level', '{"msg":"m","level":"WARNING"}', { ...plain, msg: 'm', 'talos-level': 'warn' }],
    ['a level that is not known', '{"msg":"m","level":"custom"}', { ...plain, msg: 'm', level: 'custom' }],
    ['an error', '{"msg":"m","level":"info","err":"no"}', { ...plain, msg: 'm: no', 'talos-level': 'warn' }],
    ['an error of an error', '{"msg":"m","level":"error","err":"no"}', { ...plain, msg: 'm: no', 'talos-level': 'error' }],
    ['seconds', '{"msg":"m","ts":1700000000.25}', { ...plain, msg: 'm', 'talos-time': '2023-11-14T22:13:20.250Z' }],
    ['milliseconds', '{"msg":"m","ts":1700000000250}', { ...plain, msg: 'm', 'talos-time': '2023-11-14T22:13:20.250Z' }],
    [
      'a time with an offset',
      '{"msg":"m","time":"2026-11-24T12:00:00.123456789+02:00"}',
      { ...plain, msg: 'm', 'talos-time': '2026-11-24T10:00:00.123456789Z' },
    ],
    ['a time that is none', '{"msg":"m","time":"soon"}', { ...plain, msg: 'm', time: 'soon' }],
    [
      'a line of this system',
      '2026-11-24T09:00:00.001Z warn: delivery failed error="x"',
      { ...plain, msg: 'delivery failed error="x"', 'talos-level': 'warn', 'talos-time': '2026-11-24T09:00:00.001Z' },
    ],
    [
      'a line of a controller',
      '2026-11-24T09:00:00.001Z INFO  controller started',
      { ...plain, msg: 'controller started', 'talos-time': '2026-11-24T09:00:00.001Z' },
    ],
  ])('%s', (_, line, expected) => {
    expect(message(line)).toEqual(expected)
  })

  test('fields of the line do not replace those of the system, tags replace all', () => {
    expect(message('{"msg":"m","talos-service":"other"}')).toEqual({ ...plain, msg: 'm' })
    expect(message('m', { tags: { msg: 'tag', node: 'a' } })).toEqual({ ...plain, msg: 'tag', node: 'a' })
  })

  test('a line that was cut is marked', () => {
    expect(message('m', { cut: true })).toEqual({ ...plain, msg: 'm', truncated: true })
  })
})
