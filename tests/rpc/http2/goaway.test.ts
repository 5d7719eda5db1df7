import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listen } from '../../../src/rpc/http2/listen.ts'
import { RawClient } from './raw-client.ts'
import { sessionPair } from './session-pair.ts'

test('a server that stops in good order gives the reason in the words of gRPC', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-goaway-'))
  const path = join(folder, 'server')
  const listener = listen({ unix: path }, { maxStreams: 10, welcome: () => ({ request() {} }) })
  const client = await RawClient.connect(path)
  const closing = listener.close()
  expect(await client.end()).toBe('GOAWAY NO_ERROR')
  expect(client.farewell).toBe('graceful_stop')
  await closing
  rmSync(folder, { recursive: true, force: true })
})

test('a call that outlives the end of its server fails with that reason', async () => {
  const { client, server } = await sessionPair({ request() {}, maxStreams: 10 })
  const stream = client.request({ ':method': 'POST', ':path': '/x', ':scheme': 'http', ':authority': 'x' })
  await Bun.sleep(0)
  server.close()
  await Bun.sleep(0)
  expect(stream.failure).toBeUndefined()
  client.gone(new Error('connection reset by peer'))
  expect(stream.failure?.message).toBe('connection reset by peer, received prior goaway: code: NO_ERROR, debug data: "graceful_stop"')
})
