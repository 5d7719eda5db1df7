import { expect, test } from 'bun:test'
import dgram from 'node:dgram'
import { once } from 'node:events'
import net from 'node:net'
import { forward } from '../../../src/programs/node-supervisor/port-forward.ts'
import { freePort } from '../../support/free-port.ts'

async function echo(name: string): Promise<{ port: number; close(): void }> {
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    socket.write(`${name}:`)
    socket.pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: (server.address() as net.AddressInfo).port, close: () => server.close() }
}

async function talk(port: number, text: string): Promise<string> {
  const socket = net.connect({ host: '127.0.0.1', port, allowHalfOpen: true })
  socket.end(text)
  let answer = ''
  for await (const chunk of socket) answer += chunk
  return answer
}

test('bytes go both ways and the end of one direction leaves the other open', async () => {
  const target = await echo('a')
  const hostPort = await freePort()
  const targets = [{ address: '127.0.0.1', port: target.port }]
  const forwarding = await forward({ protocol: 'tcp', hostAddress: '127.0.0.1', hostPort, targets: () => targets })
  expect(await talk(hostPort, 'hello')).toBe('a:hello')
  forwarding.close()
  target.close()
})

test('a target that refuses is skipped for the next one', async () => {
  const target = await echo('b')
  const hostPort = await freePort()
  const targets = [
    { address: '127.0.0.1', port: await freePort() },
    { address: '127.0.0.1', port: target.port },
  ]
  const forwarding = await forward({ protocol: 'tcp', hostAddress: '127.0.0.1', hostPort, targets: () => targets })
  expect(await talk(hostPort, '1')).toBe('b:1')
  expect(await talk(hostPort, '2')).toBe('b:2')
  forwarding.close()
  target.close()
})

test('a port that is taken is refused', async () => {
  const target = await echo('c')
  await expect(forward({ protocol: 'tcp', hostAddress: '127.0.0.1', hostPort: target.port, targets: () => [] })).rejects.toThrow()
  target.close()
})

test('datagrams find their way back to the client', async () => {
  const server = dgram.createSocket('udp4')
  server.on('message', (bytes, from) => server.send(`re:${bytes}`, from.port, from.address))
  server.bind(0, '127.0.0.1')
  await once(server, 'listening')
  const hostPort = await freePort()
  const targets = [{ address: '127.0.0.1', port: server.address().port }]
  const forwarding = await forward({ protocol: 'udp', hostAddress: '127.0.0.1', hostPort, targets: () => targets })
  const ask = async (text: string) => {
    const client = dgram.createSocket('udp4')
    client.send(text, hostPort, '127.0.0.1')
    const [answer] = await once(client, 'message')
    client.close()
    return String(answer)
  }
  expect(await Promise.all([ask('x'), ask('y')])).toEqual(['re:x', 're:y'])
  forwarding.close()
  server.close()
})
