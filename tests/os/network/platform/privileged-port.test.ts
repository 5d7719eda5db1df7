import { afterEach, expect, test } from 'bun:test'
import { createServer, type Server } from 'node:net'
import { fetchFromPort, privilegedPorts } from '../../../../src/os/network/platform/privileged-port.ts'

let server: ReturnType<typeof Bun.serve> | undefined
let held: Server | undefined
afterEach(async () => {
  await server?.stop(true)
  held?.close()
})

/** A free port, and one that is held. */
async function ports(): Promise<[held: number, free: number]> {
  const listening = async () => {
    const one = createServer()
    await new Promise<void>((resolve) => one.listen(0, '127.0.0.1', resolve))
    return [one, (one.address() as { port: number }).port] as const
  }
  const [[first, taken], [second, free]] = [await listening(), await listening()]
  held = first
  await new Promise((resolve) => second.close(resolve))
  return [taken, free]
}

test('a request comes from the first free one of the ports', async () => {
  const seen: (number | undefined)[] = []
  server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request, server) {
      seen.push(server.requestIP(request)?.port)
      return new Response('x'.repeat(100), { status: 203 })
    },
  })
  const [taken, free] = await ports()
  const options = { ports: [taken, free], headers: {}, limit: 100, signal: AbortSignal.timeout(10_000) }
  const response = await fetchFromPort(`${server.url}`, options)
  expect([response.status, (await response.text()).length, seen]).toEqual([203, 100, [free]])
  await expect(fetchFromPort(`${server.url}`, { ...options, ports: [taken] })).rejects.toThrow('no source port is free')
  await expect(fetchFromPort(`${server.url}`, { ...options, ports: [0], limit: 99 })).rejects.toThrow('response larger than 99 bytes')
})

test('the ports are those below 1024 that the server accepts, each once', () => {
  expect([privilegedPorts(() => 0).slice(0, 2), privilegedPorts(() => 0.9999).slice(0, 2)]).toEqual([
    [100, 101],
    [611, 100],
  ])
  expect(new Set(privilegedPorts()).size).toBe(512)
})
