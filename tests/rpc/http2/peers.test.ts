/** Another implementation of HTTP/2, which codes its headers by Huffman and takes large windows, against both our ends. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import http2 from 'node:http2'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { dial } from '../../../src/rpc/client/dial.ts'
import { type Listener, listen } from '../../../src/rpc/http2/listen.ts'
import type { Session } from '../../../src/rpc/http2/session.ts'
import type { Headers } from '../../../src/wire/http2/hpack.ts'
import { runs } from '../../support/runs.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-peers-'))
const ours = join(folder, 'ours')
const theirs = join(folder, 'theirs')
const request = { ':method': 'POST', ':scheme': 'http', ':path': '/', ':authority': 'test' }
let listener: Listener
let server: http2.Http2Server
let client: http2.ClientHttp2Session
let session: Session
let seen: Headers = {}

beforeAll(async () => {
  listener = listen(
    { unix: ours },
    {
      maxStreams: 100,
      welcome: () => ({
        request: (stream, headers) => {
          seen = headers
          stream.respond({ ':status': 200, 'x-back': headers['x-text'] })
          stream.read({
            data(piece) {
              stream.write(piece)
              stream.release(piece.length)
            },
            end: () => stream.end(undefined, { 'x-trailer': 'behind' }),
          })
        },
      }),
    },
  )
  server = http2.createServer()
  server.on('stream', (stream: http2.ServerHttp2Stream, headers) => {
    stream.respond({ ':status': 200, 'x-back': headers['x-text'] }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-trailer': 'behind' }))
    stream.pipe(stream)
  })
  await new Promise<void>((resolve) => server.listen(theirs, () => resolve()))
  client = http2.connect('http://localhost', { createConnection: () => net.connect(ours) })
  session = await dial({ unix: theirs })
})
afterAll(async () => {
  client.close()
  session.close()
  server.close()
  await listener.close()
  rmSync(folder, { recursive: true, force: true })
})

interface Answer {
  back: unknown
  trailer: unknown
  body: Buffer
}

function askOurs(text: string, body: Buffer): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = client.request({ ':method': 'POST', ':path': '/', 'x-text': text })
    const pieces: Buffer[] = []
    let [back, trailer]: unknown[] = []
    stream.on('response', (headers) => {
      back = headers['x-back']
    })
    stream.on('trailers', (headers) => {
      trailer = headers['x-trailer']
    })
    stream.on('data', (piece: Buffer) => pieces.push(piece))
    stream.on('error', reject)
    stream.on('close', () => resolve({ back, trailer, body: Buffer.concat(pieces) }))
    stream.end(body)
  })
}

function askTheirs(text: string, body: Buffer): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ...request, 'x-text': text })
    const pieces: Buffer[] = []
    let [back, trailer]: unknown[] = []
    stream.read({
      headers(headers) {
        back = headers['x-back']
      },
      data(piece) {
        pieces.push(Buffer.from(piece))
        stream.release(piece.length)
      },
      end(trailers) {
        trailer = trailers?.['x-trailer']
      },
    })
    stream.whenClosed(() => (stream.failure ? reject(stream.failure) : resolve({ back, trailer, body: Buffer.concat(pieces) })))
    stream.end(body)
  })
}

describe.each([
  ['their client and our server', askOurs],
  ['our client and their server', askTheirs],
])('%s', (_, ask) => {
  test('understand each other’s headers', async () => {
    const text = fc.string({
      minLength: 1,
      maxLength: 400,
      unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
    })
    await fc.assert(
      fc.asyncProperty(text, async (value) => {
        const { back, trailer, body } = await ask(value, Buffer.from(value))
        expect([back, trailer, body.toString()]).toEqual([value, 'behind', value])
      }),
      { numRuns: runs(150), seed: 1 },
    )
  })

  test('pass bytes both ways, many streams at once', async () => {
    const sizes = [0, 1, 16_384, 65_535, 65_536, 1_000_000, 3_000_000]
    const answers = await Promise.all(sizes.map((size) => ask('x', Buffer.alloc(size, size % 251))))
    expect(answers.map(({ body }) => body.length)).toEqual(sizes)
    for (const [index, { body }] of answers.entries()) expect(body.equals(Buffer.alloc(body.length, sizes[index]! % 251))).toBe(true)
  })
})

test('a header name that occurs twice is a list', async () => {
  await new Promise<void>((resolve) => {
    const stream = client.request({ ':method': 'POST', ':path': '/', 'x-many': ['a, b', 'c'] as never })
    stream.resume()
    stream.on('close', () => resolve())
    stream.end()
  })
  expect(seen['x-many']).toEqual(['a, b', 'c'])
})
