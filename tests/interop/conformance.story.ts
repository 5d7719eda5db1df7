/** The field's own conformance suite for states, over the wire against our store: every one of its tests passes. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import { silent } from '../../src/cosi/log.ts'
import { defineResource, type ResourceType } from '../../src/cosi/resource.ts'
import { Store } from '../../src/cosi/store.ts'
import { serveUnix } from '../../src/rpc/server/server.ts'
import { stateMethods } from '../../src/rpc/server/state.ts'
import { unfilteredWrites } from '../../src/rpc/server/state-writes.ts'
import { buildConformance } from './client.ts'

setDefaultTimeout(300_000)

const folder = mkdtempSync(join(tmpdir(), 'ichor-conformance-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('the store passes the suite that the field holds its own states to', async () => {
  const program = await buildConformance()
  const store = new Store()
  store.register(defineResource({ type: 'os/path', namespace: 'default', spec: v.any() }) as ResourceType)
  const path = join(folder, 'state.sock')
  const methods = stateMethods(() => undefined, 'anyone', unfilteredWrites)
  const server = await serveUnix({ path }, { methods, store, log: silent })
  try {
    const suite = Bun.spawn([program, '-test.v', '-test.timeout', '2m'], { env: { ...process.env, STATE_SOCKET: path }, stderr: 'pipe' })
    const output = await new Response(suite.stdout).text()
    const results = output.split('\n').filter((line) => /^ *--- /.test(line))
    expect(results.filter((line) => !line.includes('--- PASS'))).toEqual([])
    expect(results.length).toBeGreaterThan(20)
    expect(await suite.exited).toBe(0)
  } finally {
    await server.close(0)
  }
})
