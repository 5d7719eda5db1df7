/** What a client may not make a server hold or do. */
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dial } from '../../../src/rpc/client/dial.ts'
import * as limits from '../../../src/rpc/http2/limits.ts'
import { type Listener, listen } from '../../../src/rpc/http2/listen.ts'
import type { Stream } from '../../../src/rpc/http2/stream.ts'
import { flag, frameType } from '../../../src/wire/http2/frame.ts'
import { authority, identityOf } from '../../programs/apid/nodes.ts'
import { RawClient } from './raw-client.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-limits-'))
const path = join(folder, 'server')
const shortGreeting = join(folder, 'short-greeting')
const crowded = join(folder, 'crowded')
const listeners: Listener[] = []
/** Streams that came, and those that are still open. */
const came: Stream[] = []
let open = 0
let client: RawClient

beforeAll(() => {
  const request = (stream: Stream, headers: Record<string, string | string[]>) => {
    came.push(stream)
    open++
    stream.whenClosed(() => open--)
    stream.read({ data: (piece) => stream.release(piece.length), end() {} })
    if (headers[':path'] === '/hang') return
    stream.respond({ ':status': 200 })
    stream.end(Buffer.from('well'))
  }
  listeners.push(listen({ unix: path }, { maxStreams: 10, welcome: () => ({ request }) }))
  listeners.push(listen({ unix: crowded }, { maxStreams: 5000, welcome: () => ({ request }) }))
  listeners.push(listen({ unix: shortGreeting }, { maxStreams: 10, welcome: () => ({ request }), greetingTime: 50 }))
})
afterEach(() => client.close())
afterAll(async () => {
  for (const listener of listeners) await listener.close()
  rmSync(folder, { recursive: true, force: true })
})

const connect = async () => {
  client = await RawClient.connect(path)
  return client
}

describe('a client', () => {
  test('that sends nothing is disconnected after a while', async () => {
    client = await RawClient.connect(shortGreeting, { greet: false })
    await client.end()
  })

  test('that sends half a preface is disconnected too', async () => {
    client = await RawClient.connect(shortGreeting, { greet: false })
    client.send(Buffer.from('PRI * HTTP/2.0\r\n'))
    await client.end()
  })

  test('that does not speak HTTP/2 gets an error', async () => {
    client = await RawClient.connect(path, { greet: false })
    client.send(Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'))
    expect(await client.end()).toBe('GOAWAY PROTOCOL_ERROR')
  })

  test('whose header block never ends is disconnected', async () => {
    await connect()
    client.request(1, {}, 0)
    for (let n = 0; n <= limits.maxContinuations; n++) client.frame(frameType.CONTINUATION, 0, 1)
    expect(await client.end()).toBe('GOAWAY ENHANCE_YOUR_CALM')
  })

  test('whose header block is very large is disconnected', async () => {
    await connect()
    client.request(1, {}, 0)
    for (let n = 0; n < 9; n++) client.frame(frameType.CONTINUATION, 0, 1, Buffer.alloc(16_384))
    expect(await client.end()).toBe('GOAWAY ENHANCE_YOUR_CALM')
  })

  test('whose headers are too large gets a clear status, and its next call succeeds', async () => {
    await connect()
    // 300 bytes that stand for a list of 160,000: one header, repeated by its index.
    const value = 'v'.repeat(500)
    client.request(1, { large: value, ':path': '/hang' }, flag.END_HEADERS | flag.END_STREAM)
    const indexed = Buffer.alloc(300, 0xbe)
    client.frame(frameType.HEADERS, flag.END_HEADERS | flag.END_STREAM, 3, Buffer.concat([Buffer.from([0x83, 0x86, 0x84]), indexed]))
    client.request(5)
    await client.until(() => client.frames.includes('HEADERS 3 end') && client.frames.includes('DATA 5 end'))
    expect(client.headers.get(3)).toMatchObject({
      'grpc-status': '8',
      'grpc-message': `headers are larger than the limit of ${limits.maxHeaderList} bytes`,
    })
  })

  test('has only the calls beyond the limit refused', async () => {
    await connect()
    for (let n = 0; n < 12; n++) client.request(1 + 2 * n, { ':path': '/hang' })
    await client.until(() => client.frames.filter((line) => line.endsWith('REFUSED_STREAM')).length === 2)
    expect(client.frames).toContain('RST_STREAM 21 REFUSED_STREAM')
    expect(client.frames).toContain('RST_STREAM 23 REFUSED_STREAM')
  })

  test('that opens streams only to reset them is disconnected', async () => {
    await connect()
    const before = came.length
    const cancel = Buffer.from([0, 0, 0, 8])
    for (let n = 0; n < 4 * limits.resetBurst && !client.closed; n++) {
      client.request(1 + 2 * n, { ':path': '/hang' })
      client.frame(frameType.RST_STREAM, 0, 1 + 2 * n, cancel)
    }
    expect(await client.end()).toBe('GOAWAY ENHANCE_YOUR_CALM')
    expect(came.length - before).toBeLessThan(4 * limits.resetBurst)
    expect(open).toBe(0)
  })

  test('that only sends PING is disconnected', async () => {
    await connect()
    for (let n = 0; n <= limits.maxIdleFrames; n++) client.frame(frameType.PING, 0, 0, Buffer.alloc(8))
    expect(await client.end()).toBe('GOAWAY ENHANCE_YOUR_CALM')
  })

  test('that changes its settings all the time is disconnected, and costs little with thousands of streams', async () => {
    client = await RawClient.connect(crowded)
    for (let n = 0; n < 4096; n++) client.request(1 + 2 * n, { ':path': n % 2 ? '/' : '/hang' })
    client.settings({ initialWindowSize: 0 })
    await client.until(() => client.frames.filter((line) => line.startsWith('HEADERS')).length === 2048)
    const before = process.cpuUsage()
    for (let n = 0; n <= limits.maxSettings; n++) client.settings({ initialWindowSize: n % 2 })
    expect(await client.end()).toBe('GOAWAY ENHANCE_YOUR_CALM')
    const { user, system } = process.cpuUsage(before)
    expect(user + system).toBeLessThan(1_000_000)
  })

  test('that sends empty frames is disconnected', async () => {
    await connect()
    client.request(1, { ':path': '/hang' }, flag.END_HEADERS)
    for (let n = 0; n <= limits.maxIdleFrames; n++) client.frame(frameType.DATA, 0, 1)
    expect(await client.end()).toBe('GOAWAY ENHANCE_YOUR_CALM')
  })

  test('that sends more than its window gets an error', async () => {
    await connect()
    client.request(1, { ':path': '/hang' }, flag.END_HEADERS)
    await client.until(() => open === 1 || client.frames.length > 2)
    const stream = came.at(-1)!
    // Nothing is released any more: what comes is held.
    stream.release = () => {}
    for (let n = 0; n < 5; n++) client.frame(frameType.DATA, 0, 1, Buffer.alloc(16_384))
    await client.until(() => client.frames.includes('RST_STREAM 1 FLOW_CONTROL_ERROR'))
  })

  test('that disconnects leaves no stream behind', async () => {
    await connect()
    for (let n = 0; n < 10; n++) client.request(1 + 2 * n, { ':path': '/hang' }, flag.END_HEADERS)
    const ours = came.length
    client.frame(frameType.PING, 0, 0, Buffer.alloc(8))
    await client.until(() => client.frames.includes('PING'))
    const streams = came.slice(ours - 10)
    const gone = Promise.all(streams.map((stream) => new Promise<void>((resolve) => stream.whenClosed(resolve))))
    client.close()
    await gone
    expect(open).toBe(0)
  })
})

test('a client that stalls in the TLS handshake is disconnected, and delays no other', async () => {
  client = await RawClient.connect(path)
  const turn = setImmediate
  jest.useFakeTimers()
  using _time = { [Symbol.dispose]: () => void jest.useRealTimers() }
  const { server: pair } = identityOf('127.0.0.1', 'worker')
  const tls = { cert: pair.certificate, key: pair.key }
  const troubles: string[] = []
  const place = { host: '127.0.0.1', port: 0, tls }
  const listener = listen(place, {
    maxStreams: 10,
    welcome: () => ({ request: () => {} }),
    trouble: (what) => troubles.push(what),
  })
  const closed = Array.from({ length: 20 }, (_, n) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const socket = { close: () => resolve(), data() {}, error: () => resolve() }
    // Some say nothing at all, others the beginning of a handshake.
    void Bun.connect({ hostname: '127.0.0.1', port: listener.port, socket }).then(
      (raw) => n % 2 && raw.write(Buffer.from([22, 3, 1, 2, 0, 1])),
    )
    return promise
  })
  const session = await dial({ address: `127.0.0.1:${listener.port}`, tls: { ca: authority.crt } })
  await new Promise<void>((resolve) => session.ping(resolve))
  let left = closed.length
  for (const each of closed) void each.then(() => left--)
  // Its time begins when the server accepts a connection, which may be later than the call of the client.
  while (left > 0) {
    jest.advanceTimersByTime(limits.greetingTime)
    await new Promise<void>((resolve) => turn(resolve))
  }
  expect(troubles.filter((what) => what === 'client sent no preface in time')).toHaveLength(20)
  expect(session.open).toBe(true)
  session.close()
  await listener.close()
})

test('requests beyond the limit of concurrent streams are queued', async () => {
  client = await RawClient.connect(path)
  const session = await dial({ unix: path })
  const hanging = Array.from({ length: 10 }, () =>
    session.request({ ':method': 'POST', ':scheme': 'http', ':path': '/hang', ':authority': 'x' }),
  )
  const late = session.request({ ':method': 'POST', ':scheme': 'http', ':path': '/', ':authority': 'x' })
  late.end(Buffer.from('body'))
  expect(late.id).toBe(0)
  const answered = (async () => {
    let text = ''
    for await (const piece of late.chunks()) text += piece.toString()
    return text
  })()
  hanging[3]!.reset()
  expect(await answered).toBe('well')
  session.close()
  for (const stream of hanging) stream.reset()
})

test('hundreds of requests with bodies, few of them concurrent, are all answered', async () => {
  client = await RawClient.connect(path)
  const place = join(folder, 'later')
  const later = (stream: Stream) => {
    stream.respond({ ':status': 200 })
    setImmediate(() => stream.end(Buffer.from('well')))
  }
  listeners.push(listen({ unix: place }, { maxStreams: 10, welcome: () => ({ request: later }) }))
  const session = await dial({ unix: place })
  const answers = Array.from({ length: 300 }, async () => {
    const call = session.request({ ':method': 'POST', ':scheme': 'http', ':path': '/', ':authority': 'x' })
    call.end(Buffer.from('body'))
    let text = ''
    for await (const piece of call.chunks()) text += piece.toString()
    return text
  })
  expect(new Set(await Promise.all(answers))).toEqual(new Set(['well']))
  session.close()
})

describe('a client that is silent', () => {
  const listening = (name: string) => {
    const place = join(folder, name)
    const running = Promise.withResolvers<Stream>()
    const listener = listen({ unix: place }, { maxStreams: 10, welcome: () => ({ request: (stream) => running.resolve(stream) }) })
    listeners.push(listener)
    return { place, listener, running: running.promise }
  }

  test('is kept as long as it answers pings, however old its last answer is', async () => {
    client = await RawClient.connect(path)
    const { place, listener, running } = listening('silent')
    const session = await dial({ unix: place })
    const call = session.request({ ':method': 'POST', ':scheme': 'http', ':path': '/', ':authority': 'x' })
    call.end()
    const server = await running
    server.respond({ ':status': 200 })
    for (let sweep = 0; sweep < 5; sweep++) {
      listener.sweep(0)
      // Later requests are answered later.
      await new Promise<void>((resolve) => session.ping(resolve))
    }
    server.end(Buffer.from('at last'))
    const parts: string[] = []
    for await (const piece of call.chunks()) parts.push(piece.toString())
    expect(parts.join('')).toBe('at last')
    session.close()
  })

  test('is disconnected when it does not', async () => {
    const { place, listener, running } = listening('gone')
    client = await RawClient.connect(place)
    client.request(1)
    await running
    listener.sweep(0)
    listener.sweep(0)
    await client.end()
  })
})

test('a server that closes lets running calls finish, and accepts no more', async () => {
  client = await RawClient.connect(path)
  const place = join(folder, 'closing')
  const running = Promise.withResolvers<Stream>()
  const listener = listen({ unix: place }, { maxStreams: 10, welcome: () => ({ request: (stream) => running.resolve(stream) }) })
  const session = await dial({ unix: place })
  const call = session.request({ ':method': 'POST', ':scheme': 'http', ':path': '/', ':authority': 'x' })
  const server = await running.promise
  const gone = new Promise<void>((resolve) => session.whenClosed(() => resolve()))
  const closed = listener.close(30_000)
  await new Promise<void>((resolve) => session.ping(resolve))
  expect(session.open).toBe(false)
  const refused = session.request({ ':method': 'POST', ':scheme': 'http', ':path': '/', ':authority': 'x' })
  expect(refused.failure?.unprocessed).toBe(true)
  server.respond({ ':status': 200 })
  server.end(Buffer.from('still here'))
  call.end()
  const parts: string[] = []
  for await (const piece of call.chunks()) parts.push(piece.toString())
  expect(parts.join('')).toBe('still here')
  await closed
  await gone
})
