import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import { Engine, EngineError } from '../../../../../src/programs/talosctl/cluster/engine/client.ts'
import { EngineDaemon } from '../../../../support/engine/daemon.ts'

const signal = new AbortController().signal
const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

function daemon(options: ConstructorParameters<typeof EngineDaemon>[0] = {}): EngineDaemon {
  const one = new EngineDaemon(options)
  ends.push(() => one.stop())
  return one
}

/** A server of one's own making on a socket. */
function server(fetch: (request: Request) => Response | Promise<Response>, version = '1.41'): string {
  const pong = () => new Response('OK', { headers: { 'Api-Version': version } })
  const folder = mkdtempSync(join(tmpdir(), 'engine-'))
  const socket = join(folder, 's')
  const serving = Bun.serve({ unix: socket, fetch: (request) => (new URL(request.url).pathname === '/_ping' ? pong() : fetch(request)) })
  ends.push(() => {
    serving.stop(true)
    rmSync(folder, { recursive: true })
  })
  return socket
}
test('an older engine is spoken to in its own version, a newer one in the newest that is known', async () => {
  for (const [offered, spoken] of [
    ['1.41', '/v1.41/info'],
    ['1.99', '/v1.51/info'],
  ] as const) {
    let requested = ''
    const socket = server((request) => {
      requested = new URL(request.url).pathname
      return new Response('{}')
    }, offered)
    await (await Engine.open(socket, signal)).request('GET', '/info', v.object({}))
    expect(requested).toBe(spoken)
  }
})

test('an engine that is too old, a socket of something else and one where nobody listens are refused in one line', async () => {
  await expect(Engine.open(daemon({ apiVersion: '1.24' }).socket, signal)).rejects.toThrow(
    /serves version 1\.24 of its API, 1\.40 is needed/,
  )
  await expect(Engine.open(daemon({ apiVersion: 'x' }).socket, signal)).rejects.toThrow(/is not the socket of a container engine/)
  await expect(Engine.open('/nowhere/engine.sock', signal)).rejects.toThrow(
    /^the container engine at "\/nowhere\/engine.sock" does not answer GET \/_ping: ENOENT: start it, or change DOCKER_HOST$/,
  )
})

test('a refusal has the status and the message of the engine', async () => {
  const engine = await Engine.open(daemon().socket, signal)
  const refused = engine.request('GET', '/images/none/json', v.object({}))
  await expect(refused).rejects.toThrow(new EngineError(404, 'none: image not known'))
})

test('an answer that is too large, or not what it should be, is an error and not held in memory', async () => {
  const huge = server(() => new Response(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1 << 20)) })))
  const engine = await Engine.open(huge, signal)
  await expect(engine.request('GET', '/info', v.object({}))).rejects.toThrow("GET /info: the engine's answer is larger than 8388608 bytes")
  const lines = async () => {
    for await (const _ of engine.lines('/images/create', {})) break
  }
  await expect(lines()).rejects.toThrow(/has a line of more than/)
  const odd = await Engine.open(
    server(() => new Response('<html>')),
    signal,
  )
  await expect(odd.request('GET', '/info', v.object({}))).rejects.toThrow(/^GET \/info: the engine's answer is not understood/)
})

test('a silent engine is given up at the deadline, and at the abort of the command', async () => {
  const socket = server(() => new Promise(() => {}))
  const engine = await Engine.open(socket, signal)
  await expect(engine.perform('POST', '/containers/x/start', { deadline: 50 })).rejects.toThrow(
    `the container engine at "${socket}" did not answer POST /v1.41/containers/x/start within 0.05 s`,
  )
  const abort = new AbortController()
  const other = await Engine.open(socket, abort.signal)
  const waiting = other.perform('POST', '/containers/x/start')
  abort.abort(new Error('interrupted'))
  await expect(waiting).rejects.toThrow('interrupted')
})
