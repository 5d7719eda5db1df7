import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import http2 from 'node:http2'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../src/cosi/log.ts'
import { Store } from '../../src/cosi/store.ts'
import { type Channel, connect } from '../../src/rpc/client/channel.ts'
import { answer, route } from '../../src/rpc/server/call.ts'
import { bidi, clientStream, serverStream, unary } from '../../src/rpc/server/method.ts'
import { RequestClock } from '../../src/rpc/server/requests.ts'
import { type Server, serveUnix } from '../../src/rpc/server/server.ts'
import { RpcError } from '../../src/rpc/status.ts'
import { sessionPair } from './http2/session-pair.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-rpc-'))
const path = join(folder, 'run', 'test.sock')
let server: Server
let channel: Channel
const gone = Promise.withResolvers<unknown>()
let sent = 0

const methods = [
  unary('machine.MachineService/Hostname', ['os:reader'], (_, { metadata }) => ({
    messages: [{ hostname: metadata.greeting?.join('+') ?? 'none' }],
  })),
  unary('machine.MachineService/Reboot', ['os:admin'], () => ({})),
  unary('machine.MachineService/Restart', ['os:reader'], ({ id }) => {
    throw new RpcError('NotFound', `no container "${id}", 100 % sure – really`)
  }),
  unary('machine.MachineService/Stats', ['os:reader'], (_, { signal }) => {
    signal.addEventListener('abort', () => gone.resolve(signal.reason))
    return new Promise<never>(() => {})
  }),
  serverStream('machine.MachineService/Read', ['os:reader'], async function* ({ path }) {
    const bytes = Buffer.alloc(65536, path)
    for (sent = 0; sent < 400; sent++) yield { bytes }
  }),
  clientStream('machine.MachineService/EtcdRecover', ['os:reader'], async (requests) => {
    let size = 0
    for await (const { bytes } of requests) size += bytes.length
    return { messages: [{ metadata: { hostname: String(size) } }] }
  }),
  clientStream('machine.ImageService/Import', ['os:reader'], async (requests) => {
    for await (const _ of requests) throw new RpcError('FailedPrecondition', 'not now')
    return {}
  }),
  bidi('machine.DebugService/ContainerRun', ['os:reader'], async function* (requests) {
    for await (const { stdinData } of requests) if (stdinData) yield { stdoutData: Buffer.from(stdinData).reverse() }
    yield { exitCode: 0 }
  }),
]

beforeAll(async () => {
  server = await serveUnix({ path, mode: 0o660 }, { methods, store: new Store(), log: silent })
  channel = connect({ unix: path }, { metadata: { 'talos-role': 'os:reader' } })
})
afterAll(async () => {
  channel.close()
  await server.close()
  rmSync(folder, { recursive: true })
})

async function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'no failure',
    (error: RpcError) => [error.status, error.message],
  )
}

test('a unary call carries its metadata and returns its reply', async () => {
  const reply = await channel.unary('machine.MachineService/Hostname', {}, { metadata: { greeting: ['hello', 'again'] } })
  expect(reply.messages).toEqual([{ hostname: 'hello+again' }])
})

test('the socket has the mode it was given', () => {
  expect(statSync(path).mode & 0o777).toBe(0o660)
})

test('a caller without a role of the method is refused', async () => {
  expect(await failure(channel.unary('machine.MachineService/Reboot', {}))).toEqual(['PermissionDenied', 'not authorized'])
})

test('an unknown method is unimplemented', async () => {
  expect(await failure(channel.unary('machine.MachineService/Version', {}))).toEqual([
    'Unimplemented',
    'unknown method /machine.MachineService/Version',
  ])
})

test("a handler's error arrives with its status and all of its message", async () => {
  expect(await failure(channel.unary('machine.MachineService/Restart', { id: 'x' }))).toEqual([
    'NotFound',
    'no container "x", 100 % sure – really',
  ])
})

test('a caller that cancels ends the handler', async () => {
  const caller = new AbortController()
  const call = failure(channel.unary('machine.MachineService/Stats', {}, { signal: caller.signal }))
  setTimeout(() => caller.abort(), 20)
  expect(await call).toEqual(['Canceled', 'call "/machine.MachineService/Stats": canceled'])
  expect(await gone.promise).toMatchObject({ status: 'Canceled' })
})

test('an expired deadline ends the call', async () => {
  expect(await failure(channel.unary('machine.MachineService/Stats', {}, { deadline: 20 }))).toMatchObject([
    'DeadlineExceeded',
    expect.anything(),
  ])
})

test('a deadline that no timer can hold leaves the call its time', async () => {
  const waiting = failure(channel.unary('machine.MachineService/Stats', {}, { deadline: 600 * 3_600_000, signal: AbortSignal.timeout(30) }))
  expect(await waiting).toMatchObject(['Canceled', expect.anything()])
})

test('a deadline that no timer can hold leaves a connection its time too', async () => {
  const mute = net.createServer(() => {}).listen(0, '127.0.0.1')
  await new Promise((resolve) => mute.once('listening', resolve))
  const { port } = mute.address() as net.AddressInfo
  const connecting = connect({ address: `127.0.0.1:${port}`, tls: {} })
  const options = { deadline: 600 * 3_600_000, signal: AbortSignal.timeout(30) }
  expect(await failure(connecting.unary('machine.MachineService/Stats', {}, options))).toEqual(['Canceled', 'canceled while connecting'])
  connecting.close()
  mute.close()
})

test('a stream arrives completely', async () => {
  let size = 0
  for await (const { bytes } of channel.serverStream('machine.MachineService/Read', { path: 'x' })) size += bytes.length
  expect(size).toBe(400 * 65536)
})

test('a reader that does not read blocks the sender', async () => {
  const stream = channel.serverStream('machine.MachineService/Read', { path: 'x' })
  await stream.next()
  const before = await settled(() => sent)
  expect(before).toBeLessThan(300)
  await stream.return()
})

test('many requests get one reply', async () => {
  const requests = Array.from({ length: 100 }, () => ({ bytes: Buffer.alloc(10_000) }))
  const reply = await channel.clientStream('machine.MachineService/EtcdRecover', requests)
  expect(reply.messages[0]?.metadata?.hostname).toBe('1000000')
})

test('a refusal in the middle reaches a caller that is still sending, and stops it', async () => {
  let taken = 0
  async function* endless() {
    for (; ; taken++) yield { imageChunk: { bytes: Buffer.alloc(65536) } }
  }
  expect(await failure(channel.clientStream('machine.ImageService/Import', endless()))).toEqual(['FailedPrecondition', 'not now'])
  const when = await settled(() => taken)
  expect(when).toBeLessThan(200)
  expect(await settled(() => taken)).toBe(when)
})

test('a caller that is refused by its headers is refused while it is still sending', async () => {
  async function* endless() {
    for (;;) yield { bytes: Buffer.alloc(65536) }
  }
  const stranger = channel.clientStream('machine.MachineService/EtcdRecover', endless(), { metadata: { 'talos-role': 'os:nobody' } })
  expect(await failure(stranger)).toEqual(['PermissionDenied', 'not authorized'])
})

test('bytes that do not decode are the caller’s error', async () => {
  const session = http2.connect('http://localhost', { createConnection: () => net.connect(path) })
  const stream = session.request({
    ':method': 'POST',
    ':path': '/machine.MachineService/Restart',
    'content-type': 'application/grpc',
    'talos-role': 'os:reader',
  })
  const { promise, resolve } = Promise.withResolvers<unknown>()
  stream.on('response', (headers) => resolve(headers['grpc-status']))
  stream.end(Buffer.from([0, 0, 0, 0, 3, 0x0a, 0x09, 0x61]))
  expect(await promise).toBe('3')
  session.destroy()
})

test('both sides stream', async () => {
  const replies: string[] = []
  const requests = ['abc', 'def'].map((text) => ({ stdinData: Buffer.from(text) }))
  for await (const { stdoutData, exitCode } of channel.bidi('machine.DebugService/ContainerRun', requests))
    replies.push(stdoutData ? Buffer.from(stdoutData).toString() : String(exitCode))
  expect(replies).toEqual(['cba', 'fed', '0'])
})

test('a missing server is unavailable', async () => {
  const nowhere = connect({ unix: join(folder, 'nothing.sock') })
  expect(await failure(nowhere.unary('machine.MachineService/Hostname', {}))).toMatchObject([
    'Unavailable',
    expect.stringContaining('nothing.sock'),
  ])
})

/** A number once it has stopped growing. */
async function settled(read: () => number): Promise<number> {
  for (let last = -1; ; ) {
    const now = read()
    if (now === last) return now
    last = now
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
}

test('headers, message and trailers of a reply are one write', async () => {
  const [method] = methods
  const serving = { methods, store: new Store(), log: silent, clock: new RequestClock() }
  const { client, counts } = await sessionPair({
    request: (stream, headers) => void answer(stream, headers, route(method!)(), serving),
  })
  const call = client.request({ ':method': 'POST', ':scheme': 'http', ':path': `/${method!.path}`, 'talos-role': 'os:reader' })
  call.end(Buffer.alloc(5))
  const status = await new Promise((resolve) => call.read({ data() {}, end: (trailers) => resolve(trailers?.['grpc-status']) }))
  expect(status).toBe('0')
  expect(counts.writes).toBe(1)
})
