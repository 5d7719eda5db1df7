/** A reader that pauses holds the sender up: what has come meanwhile stays within a window. */
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import http2, { type Http2Stream } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dial } from '../../src/rpc/client/dial.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-window-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const size = 12 << 20
const piece = 32 << 10
const bound = 1 << 20

function send(stream: Http2Stream): void {
  let left = size
  const more = () => {
    while (left > 0) {
      left -= piece
      if (!stream.write(Buffer.alloc(piece))) return void stream.once('drain', more)
    }
    stream.end()
  }
  more()
}

/** Reads in gulps with a pause after each; the most that waited. */
function sip(stream: Http2Stream): Promise<{ read: number; held: number }> {
  let [read, held, gulp] = [0, 0, 0]
  return new Promise((resolve, reject) => {
    stream.on('error', reject)
    stream.on('data', (chunk: Buffer) => {
      read += chunk.length
      held = Math.max(held, stream.readableLength)
      if (read - gulp < 2 * piece) return
      gulp = read
      stream.pause()
      setTimeout(() => stream.resume(), 1)
    })
    stream.on('end', () => resolve({ read, held }))
  })
}

test('what a client does not read is not sent', async () => {
  const path = join(folder, 'download')
  const server = http2.createServer()
  server.on('stream', (stream: http2.ServerHttp2Stream) => {
    stream.respond({ ':status': 200 })
    stream.resume()
    send(stream)
  })
  await new Promise<void>((resolve) => server.listen(path, () => resolve()))
  const session = await dial({ unix: path })
  const { read, held } = await sip(session.request({ ':method': 'POST', ':path': '/' }))
  expect(read).toBe(size)
  expect(held).toBeLessThan(bound)
  session.close()
  server.close()
})
