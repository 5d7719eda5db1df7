import { expect, test } from 'bun:test'
import { parseRequestHead } from '../../../src/wire/http/request-head.ts'

test('a head has its line and its headers, names in lower case, repeated ones joined', () => {
  const { method, target, minor, headers } = parseRequestHead(
    'GET /metrics?x=1 HTTP/1.1\r\nHost: a:9100\r\nAccept: text/plain;q=0.5\r\naccept:\t*/* ',
  )
  expect([method, target, minor]).toEqual(['GET', '/metrics?x=1', 1])
  expect([...headers]).toEqual([
    ['host', 'a:9100'],
    ['accept', 'text/plain;q=0.5, */*'],
  ])
  expect(parseRequestHead('HEAD / HTTP/1.0').minor).toBe(0)
})

test.each([
  ['', 'request at 0: not a request line of HTTP/1.1'],
  ['GET /metrics', 'request at 0: not a request line of HTTP/1.1'],
  ['GET  /metrics HTTP/1.1', 'request at 0: not a request line of HTTP/1.1'],
  ['get / HTTP/1.1', 'request at 0: not a request line of HTTP/1.1'],
  ['GET / HTTP/2.0', 'request at 0: not a request line of HTTP/1.1'],
  ['GET / HTTP/1.1\r\n folded: x', 'request at 16: not a header'],
  ['GET / HTTP/1.1\r\nname : x', 'request at 16: not a header'],
  ['GET / HTTP/1.1\r\na: x\0', 'request at 16: not a header'],
  ['GET / HTTP/1.1\r\na: x\nb: y', 'request at 16: not a header'],
  ['GET / HTTP/1.1\r\nHost: a\r\nHost: b', 'request at 25: a second header "host"'],
  [`GET / HTTP/1.1${'\r\na: b'.repeat(101)}`, 'request at 14: more than 100 headers'],
])('refused: %j', (text, message) => {
  expect(() => parseRequestHead(text)).toThrow(message)
})
