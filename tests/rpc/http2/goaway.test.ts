import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listen } from '../../../src/rpc/http2/listen.ts'
import { RawClient } from './raw-client.ts'

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
