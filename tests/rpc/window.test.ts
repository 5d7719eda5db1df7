/** A reader that pauses holds its own stream up, and no other: what has come meanwhile stays within a window. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dial } from '../../src/rpc/client/dial.ts'
import { bufferBudget, largestWindow, streamBuffer } from '../../src/rpc/http2/limits.ts'
import { type Listener, listen } from '../../src/rpc/http2/listen.ts'
import type { Session } from '../../src/rpc/http2/session.ts'
import type { Stream } from '../../src/rpc/http2/stream.ts'
import { RawClient } from './http2/raw-client.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-window-'))
const path = join(folder, 'server')
const size = 12 << 20
const piece = 32 << 10
let listener: Listener
let session: Session

beforeAll(async () => {
  listener = listen({ unix: path }, { maxStreams: 1000, welcome: () => ({ request: serve }) })
  session = await dial({ unix: path })
})
afterAll(async () => {
  session.close()
  await listener.close()
  rmSync(folder, { recursive: true, force: true })
})

/** What the servers of all streams have handed over. */
const written = new Map<string, number>()

function serve(stream: Stream, headers: Record<string, string | string[]>): void {
  const name = String(headers[':path'])
  stream.respond({ ':status': 200 })
  stream.read({ data: (bytes) => stream.release(bytes.length), end: () => {} })
  let left = name === '/small' ? piece : size
  const more = () => {
    while (left > 0 && !stream.closed) {
      left -= piece
      written.set(name, (written.get(name) ?? 0) + piece)
      if (!stream.write(Buffer.alloc(piece))) return stream.drained(more)
    }
    stream.end()
  }
  more()
}

function ask(name: string): Stream {
  const stream = session.request({ ':method': 'POST', ':scheme': 'http', ':path': name, ':authority': 'test' })
  stream.end()
  return stream
}

/** Reads all, one piece a turn of the event loop; the most that waited. */
async function sip(stream: Stream): Promise<{ read: number; held: number }> {
  let [read, held] = [0, 0]
  for await (const bytes of stream.chunks()) {
    held = Math.max(held, stream.held)
    read += bytes.length
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { read, held }
}

test('bytes that a client does not read are not sent', async () => {
  const { read, held } = await sip(ask('/slow'))
  expect(read).toBe(size)
  expect(held).toBeLessThanOrEqual(largestWindow)
})

test('the buffer of a stream shrinks with the number of streams of a connection, and their sum is bounded', async () => {
  const kib = 1024
  const count = 256
  const kept: Stream[] = []
  const place = join(folder, 'shared')
  const shared = listen({ unix: place }, { maxStreams: 2 * count, welcome: () => ({ request: (stream) => kept.push(stream) }) })
  // Its window is 0, so that it accepts no bytes.
  const client = await RawClient.connect(place, { settings: { initialWindowSize: 0 } })
  const fill = () => {
    for (const stream of kept) {
      stream.respond({ ':status': 200 })
      while (stream.write(Buffer.alloc(kib)));
    }
    return Math.max(...kept.map(({ pendingBytes }) => pendingBytes))
  }
  client.request(1)
  while (kept.length < 1) await Bun.sleep(1)
  expect(fill()).toBe(streamBuffer)
  kept[0]!.reset()
  kept.length = 0
  for (let n = 1; n <= count; n++) client.request(1 + 2 * n)
  while (kept.length < count) await Bun.sleep(1)
  expect(fill()).toBe(bufferBudget / count)
  expect(kept.reduce((sum, { pendingBytes }) => sum + pendingBytes, 0)).toBe(bufferBudget)
  client.close()
  await shared.close()
})

test('stalled readers block no other stream', async () => {
  const stuck = Array.from({ length: 100 }, (_, n) => ask(`/stuck-${n}`))
  for (let n = 0; n < 10; n++) expect((await sip(ask('/small'))).read).toBe(piece)
  expect((await sip(ask('/large'))).read).toBe(size)
  for (let n = 0; n < 100; n++) expect(written.get(`/stuck-${n}`)).toBeLessThanOrEqual(65_535 + streamBuffer + 2 * piece)
  for (const stream of stuck) stream.reset()
  expect((await sip(ask('/small'))).read).toBe(piece)
  expect(session.size).toBe(0)
})
