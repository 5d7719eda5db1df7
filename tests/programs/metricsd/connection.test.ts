import { expect, jest, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { silent } from '../../../src/cosi/log.ts'
import { Connection, usualBounds } from '../../../src/programs/metricsd/connection.ts'
import { Scrapes } from '../../../src/programs/metricsd/scrapes.ts'

const token = 'abcdefghijklmnop'
const authorization = `Authorization: Bearer ${token}\r\n`
const endpoint = { tokenDigest: createHash('sha256').update(token).digest() }
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

/** A connection whose socket takes `window` bytes at once. */
function client(read: (format: string) => Promise<string> = async (format) => `${format} 1\n`, window = Number.POSITIVE_INFINITY) {
  let text = ''
  let state: 'open' | 'ended' | 'terminated' = 'open'
  const wire = {
    write(bytes: Uint8Array) {
      const taken = bytes.subarray(0, window)
      text += Buffer.from(taken).toString('latin1')
      return taken.length
    },
    end: () => {
      state = 'ended'
    },
    terminate: () => {
      state = 'terminated'
    },
  }
  const connection = new Connection(wire, { endpoint, scrapes: new Scrapes(read), log: silent }, usualBounds)
  return {
    connection,
    received: () => text,
    state: () => state,
    async send(part: string) {
      connection.receive(Buffer.from(part, 'latin1'))
      await settled()
    },
  }
}

const get = (more = '', target = '/metrics') => `GET ${target} HTTP/1.1\r\nHost: a\r\n${more}\r\n`

test('a client with the token gets metrics, several times on one connection, in the format it prefers', async () => {
  const it = client()
  await it.send(get(authorization).slice(0, 10))
  expect(it.received()).toBe('')
  await it.send(get(authorization).slice(10))
  expect(it.received()).toBe(
    'HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\nvary: Accept, Accept-Encoding\r\ncache-control: no-store\r\ncontent-length: 7\r\n\r\ntext 1\n',
  )
  await it.send(get(`${authorization}Accept: application/openmetrics-text\r\n`))
  expect(it.received()).toEndWith('openmetrics 1\n')
  expect(it.state()).toBe('open')
  await it.send(get(`${authorization}Connection: close\r\n`))
  expect(it.state()).toBe('ended')
  it.connection.gone()
})

test('requests that are sent before a reply are answered in order', async () => {
  const it = client()
  await it.send(get(authorization) + get(authorization, '/other'))
  expect(it.received().match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 404'])
  it.connection.gone()
})

test.each([
  ['no token', get()],
  ['another token', get('Authorization: Bearer abcdefghijklmnoq\r\n')],
  ['another scheme', get(`Authorization: Basic ${token}\r\n`)],
  ['a token in the address', get('', `/metrics?access_token=${token}`)],
])('refused with %s, whatever the path', async (_, request) => {
  const it = client()
  await it.send(request)
  expect(it.received()).toStartWith('HTTP/1.1 401 Unauthorized\r\n')
  expect(it.received()).toContain('\r\nwww-authenticate: Bearer realm="metrics"\r\n')
  expect(it.state()).toBe('ended')
  it.connection.gone()
})

test('where no token is declared none is admitted, and a certificate is', async () => {
  const scrapes = new Scrapes(async () => 'a 1\n')
  const replies: string[] = []
  const wire = { write: (bytes: Uint8Array) => replies.push(Buffer.from(bytes).toString()) && bytes.length, end() {}, terminate() {} }
  for (const certified of [false, true]) {
    const connection = new Connection(wire, { endpoint: {}, scrapes, log: silent }, usualBounds)
    connection.greeted(certified)
    connection.receive(Buffer.from(get(authorization)))
    await settled()
    connection.gone()
  }
  expect(replies.map((reply) => reply.slice(9, 12))).toEqual(['401', '200'])
})

test.each([
  ['a body', `GET /metrics HTTP/1.1\r\nHost: a\r\n${authorization}Content-Length: 5\r\n\r\n`, 400],
  ['chunks', `GET /metrics HTTP/1.1\r\nHost: a\r\n${authorization}Transfer-Encoding: chunked\r\n\r\n`, 400],
  ['no host', `GET /metrics HTTP/1.1\r\n${authorization}\r\n`, 400],
  ['nonsense', 'hello\r\n\r\n', 400],
  ['another method', `DELETE /metrics HTTP/1.1\r\nHost: a\r\n${authorization}\r\n`, 405],
  ['another path', get(authorization, '/'), 404],
  ['a long head', `GET /metrics HTTP/1.1\r\nA: ${'a'.repeat(9000)}`, 431],
])('%s is refused', async (_, request, status) => {
  const it = client()
  await it.send(request)
  expect(it.received()).toStartWith(`HTTP/1.1 ${status} `)
  it.connection.gone()
})

test('HEAD gets the head, HTTP/1.0 one reply', async () => {
  const it = client()
  await it.send(`HEAD /metrics HTTP/1.0\r\n${authorization}\r\n`)
  expect(it.received()).toEndWith('content-length: 7\r\nconnection: close\r\n\r\n')
  expect(it.state()).toBe('ended')
  it.connection.gone()
})

test('when the node does not answer, the client gets 503 and when to come again', async () => {
  const it = client(() => Promise.reject(new Error('away')))
  await it.send(get(authorization))
  expect(it.received()).toStartWith('HTTP/1.1 503 Service Unavailable\r\n')
  expect(it.received()).toContain('retry-after: 5')
  expect(it.state()).toBe('open')
  it.connection.gone()
})

test('a client that reads slowly gets all of it', async () => {
  const it = client(async () => 'x'.repeat(1000), 100)
  await it.send(get(authorization))
  for (let count = 0; count < 20; count++) it.connection.drained()
  expect(it.received()).toEndWith('x'.repeat(1000))
  it.connection.gone()
})

test('a client that sends nothing, or does not read its reply, is disconnected in time', async () => {
  const stalled = client(async () => 'x'.repeat(1000), 100)
  await stalled.send(get(authorization))
  jest.useFakeTimers()
  try {
    const quiet = client()
    jest.advanceTimersByTime(usualBounds.greeting - 1)
    expect(quiet.state()).toBe('open')
    jest.advanceTimersByTime(1)
    expect(quiet.state()).toBe('terminated')
    const slow = client()
    slow.connection.receive(Buffer.from('GET /'))
    jest.advanceTimersByTime(usualBounds.greeting)
    expect(slow.state()).toBe('terminated')
  } finally {
    jest.useRealTimers()
  }
  stalled.connection.gone()
})

test('the node reads its metrics once a second for all clients', async () => {
  let now = 0
  let reads = 0
  const scrapes = new Scrapes(
    async () => `${++reads}`,
    () => now,
  )
  const text = async () => Buffer.from((await scrapes.get('text')).plain).toString()
  expect(await Promise.all([text(), text(), text()])).toEqual(['1', '1', '1'])
  now = 999
  expect(await text()).toBe('1')
  now = 1000
  expect(await text()).toBe('2')
})
