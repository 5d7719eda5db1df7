/** What becomes of calls when a server vanishes without closing its connection, or is silent for long. */
import { expect, test } from 'bun:test'
import http2 from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import { connect } from '../../../src/rpc/client/channel.ts'

const portOf = (server: net.Server) => (server.address() as AddressInfo).port
const listening = (server: net.Server) => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

const watch = async (stream: AsyncGenerator<unknown>) => {
  for await (const _ of stream) throw new Error('nothing was sent')
}

test('a call without a deadline ends when the server does not answer a ping', async () => {
  // It greets with empty SETTINGS, takes everything, and answers nothing more.
  const server = net.createServer((socket) => {
    socket.on('error', () => {})
    socket.write(Buffer.from('000000040000000000', 'hex'))
    socket.resume()
  })
  await listening(server)
  const channel = connect({ address: `127.0.0.1:${portOf(server)}` }, { keepalive: { silence: 20, answer: 20, interval: 40 } })
  const call = watch(channel.serverStream('machine.MachineService/Events', {}))
  await expect(call).rejects.toThrow('call "/machine.MachineService/Events": server did not answer a keepalive ping')
  channel.close()
  server.close()
})

test('a silent server that answers is waited for, and is not pinged more often than servers allow', async () => {
  const server = http2.createServer()
  const { promise: pinged, resolve } = Promise.withResolvers<void>()
  let pings = 0
  server.on('session', (session) => {
    session.on('ping', () => {
      if (++pings === 3) resolve()
    })
  })
  server.on('stream', (stream: http2.ServerHttp2Stream) => {
    stream.on('error', () => {})
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
  })
  await listening(server)
  const started = performance.now()
  const channel = connect({ address: `127.0.0.1:${portOf(server)}` }, { keepalive: { silence: 10, answer: 5000, interval: 100 } })
  const end = new AbortController()
  let ended = false
  const call = watch(channel.serverStream('machine.MachineService/Events', {}, { signal: end.signal })).catch(() => {
    ended = true
  })
  await pinged
  // Three pings have two intervals between them.
  expect(performance.now() - started).toBeGreaterThanOrEqual(200)
  expect(ended).toBe(false)
  end.abort()
  await call
  channel.close()
  server.close()
})
