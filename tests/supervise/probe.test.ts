import { expect, test } from 'bun:test'
import { httpProbe, tcpProbe, unixProbe } from '../../src/supervise/probe.ts'

const signal = () => AbortSignal.timeout(5000)

test('an open port passes, a closed one is reported', async () => {
  const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  await tcpProbe('127.0.0.1', server.port)(signal())
  server.stop(true)
  await expect(tcpProbe('127.0.0.1', server.port)(signal())).rejects.toThrow(`dial 127.0.0.1:${server.port}: `)
})

test('a missing socket is reported', async () => {
  await expect(unixProbe('/nonexistent.sock')(signal())).rejects.toThrow('dial "/nonexistent.sock": ')
})

test('a URL passes when its status is a success', async () => {
  let status = 200
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('', { status }) })
  const probe = httpProbe(`http://127.0.0.1:${server.port}/healthz`)
  await probe(signal())
  status = 500
  await expect(probe(signal())).rejects.toThrow('status 500')
  await server.stop(true)
  await expect(probe(signal())).rejects.toThrow('connection refused')
})
