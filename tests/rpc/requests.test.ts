/** Requests without a measure: too large, too many fields, never whole; and a failure of a call must fail nothing else. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import http2 from 'node:http2'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../src/cosi/log.ts'
import { Store } from '../../src/cosi/store.ts'
import { type Channel, connect } from '../../src/rpc/client/channel.ts'
import { encode } from '../../src/rpc/codec.ts'
import { frameHeader, sealFrame } from '../../src/rpc/frame.ts'
import { listen } from '../../src/rpc/http2/listen.ts'
import { methodShape } from '../../src/rpc/schema.ts'
import type { CallObserver, ServerOptions } from '../../src/rpc/server/call.ts'
import { clientStream, serverStream, unary } from '../../src/rpc/server/method.ts'
import { oneMessage, RequestClock } from '../../src/rpc/server/requests.ts'
import { type Server, serveUnix } from '../../src/rpc/server/server.ts'
import { maxErrorText, RpcError, statusName } from '../../src/rpc/status.ts'
import type { Role } from '../../src/wire/x509/roles.ts'
import { servedMethods } from '../os/served-methods.ts'

const kib = 1024
const mib = 1024 * kib
const readers: readonly Role[] = ['os:reader']
const folder = mkdtempSync(join(tmpdir(), 'ichor-requests-'))
const closers: (() => void | Promise<void>)[] = []
afterAll(async () => {
  for (const close of closers.toReversed()) await close()
  rmSync(folder, { recursive: true })
})

const methods = [
  unary('machine.MachineService/Hostname', readers, () => ({ messages: [{ hostname: 'here' }] })),
  unary('machine.MachineService/ApplyConfiguration', readers, ({ data }) => ({ messages: [{ modeDetails: String(data.length) }] })),
  unary('storage.StorageService/BlockDeviceWipe', readers, () => ({ messages: [{}] })),
  // biome-ignore lint/correctness/useYield: it never gets that far
  serverStream('machine.MachineService/Logs', readers, async function* ({ id }) {
    throw new RpcError('NotFound', `no log "${id}"`)
  }),
  clientStream('machine.MachineService/EtcdRecover', readers, async (requests) => {
    let size = 0
    for await (const { bytes } of requests) size += bytes.length
    return { messages: [{ metadata: { hostname: String(size) } }] }
  }),
]

let count = 0
async function serving(options: Partial<ServerOptions> = {}): Promise<{ path: string; channel: Channel; server: Server }> {
  const path = join(folder, `${++count}.sock`)
  const server = await serveUnix({ path }, { methods, store: new Store(), log: silent, ...options })
  const channel = connect({ unix: path }, { metadata: { 'talos-role': 'os:reader' } })
  closers.push(
    () => server.close(),
    () => channel.close(),
  )
  return { path, channel, server }
}

/** Opens a call, sends these bytes, by default without END_STREAM, and waits for the status. */
function begun(
  path: string,
  method: string,
  bytes: Uint8Array,
  session = rawSession(path),
  end = false,
): Promise<{ status: string; message: string }> {
  const headers = {
    ':method': 'POST',
    ':path': `/${method}`,
    'content-type': 'application/grpc',
    te: 'trailers',
    'talos-role': 'os:reader',
  }
  const stream = session.request(headers, { endStream: false })
  if (end) stream.end(bytes)
  else stream.write(bytes)
  return new Promise((resolve) => {
    const take = (fields: http2.IncomingHttpHeaders) => {
      if (fields['grpc-status'] !== undefined)
        resolve({ status: statusName(Number(fields['grpc-status'])), message: decodeURIComponent(String(fields['grpc-message'] ?? '')) })
    }
    stream.on('response', take)
    stream.on('trailers', take)
    stream.on('error', (error) => resolve({ status: 'reset', message: error.message }))
    stream.on('data', () => {})
  })
}

function rawSession(path: string): http2.ClientHttp2Session {
  const session = http2.connect('http://localhost', { createConnection: () => net.connect(path) })
  session.on('error', () => {})
  closers.push(() => session.destroy())
  return session
}

/** A message whose first field has so many bytes. */
function encoded(length: number): Buffer {
  return encode(methodShape('/machine.MachineService/EtcdRecover').request, { bytes: Buffer.alloc(length) })
}

/** The header of a message of the given length. */
function headerOf(length: number, ...more: Uint8Array[]): Buffer {
  const header = Buffer.alloc(frameHeader)
  header.writeUInt32BE(length, 1)
  return Buffer.concat([header, ...more])
}

const failure = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: RpcError) => error,
  )

let path: string
let channel: Channel
beforeAll(async () => {
  ;({ path, channel } = await serving())
})

describe('the limit of a request', () => {
  test('is declared with every method: small, except for configurations, values of META and streams', () => {
    const large = servedMethods('metal')
      .map((method) => [method.path, methodShape(method.path).requestLimit] as const)
      .filter(([, limit]) => limit !== 64 * kib)
    expect(Object.fromEntries(large)).toEqual({
      'ichor.v1.ConfigService/Apply': 4 * mib + 4 * kib,
      'ichor.v1.EtcdBackupStoreService/Append': 4 * mib,
      'ichor.v1.ReleaseService/Send': 4 * mib,
      'machine.DebugService/ContainerRun': 4 * mib,
      'machine.ImageService/Import': 4 * mib,
      'machine.MachineService/ApplyConfiguration': 4 * mib + 4 * kib,
      'machine.MachineService/EtcdRecover': 4 * mib,
      'machine.MachineService/MetaWrite': 256 * kib,
    })
    expect(methodShape('/securityapi.SecurityService/Certificate').requestLimit).toBe(64 * kib)
  })

  test.each([
    ['machine.MachineService/Hostname', 64 * kib],
    ['machine.MachineService/Logs', 64 * kib],
    ['machine.MachineService/ApplyConfiguration', 4 * mib + 4 * kib],
    ['machine.MachineService/EtcdRecover', 4 * mib],
  ])('of %s is judged by the first bytes, before any of the message came', async (method, limit) => {
    expect(await begun(path, method, headerOf(limit + 1))).toEqual({
      status: 'ResourceExhausted',
      message: `message of ${limit + 1} bytes is larger than the limit of ${limit}`,
    })
  })

  test('allows a configuration of 4 MiB', async () => {
    const { messages } = await channel.unary('machine.MachineService/ApplyConfiguration', { data: Buffer.alloc(4 * mib) })
    expect(messages[0]?.modeDetails).toBe(String(4 * mib))
  })

  test('applies to each message of a stream, not to their sum', async () => {
    const messages = Array.from({ length: 5 }, () => ({ bytes: Buffer.alloc(2 * mib) }))
    const reply = await channel.clientStream('machine.MachineService/EtcdRecover', messages)
    expect(reply.messages[0]?.metadata?.hostname).toBe(String(10 * mib))
  })
})

test('a request of many empty messages is refused for their number', async () => {
  const bomb = Buffer.alloc(60 * kib)
  for (let at = 0; at < bomb.length; at += 2) bomb[at] = 0x0a
  const frame = sealFrame(Buffer.concat([Buffer.alloc(frameHeader), bomb]))
  const session = rawSession(path)
  const stream = session.request({ ':method': 'POST', ':path': '/storage.StorageService/BlockDeviceWipe', 'talos-role': 'os:reader' })
  stream.end(frame)
  const headers = await new Promise<http2.IncomingHttpHeaders>((resolve) => {
    stream.on('response', (fields) => resolve(fields))
  })
  expect(headers).toMatchObject({ 'grpc-status': '8', 'grpc-message': 'the message has more than 10000 fields' })
})

test.each([
  ['ASCII', 'x'],
  ['of two bytes', 'ä'],
  ['of four bytes', '𝄞'],
])('an error that quotes a long text is cut, with letters %s', async (_, letter) => {
  const id = letter.repeat(Math.floor((60 * kib) / Buffer.byteLength(letter)))
  const error = await failure(channel.serverStream('machine.MachineService/Logs', { id }).next())
  expect(error?.status).toBe('NotFound')
  expect(error?.message).toMatch(/^no log "[^\ufffd]*…$/)
  expect(Buffer.byteLength(error!.message)).toBeLessThanOrEqual(maxErrorText)
})

describe('a request that is never complete', () => {
  test.each([
    ['without a byte', 'machine.MachineService/Hostname', Buffer.alloc(0)],
    ['in the middle of its header', 'machine.MachineService/Hostname', headerOf(100).subarray(0, 3)],
    ['in the middle of its message', 'machine.MachineService/Hostname', headerOf(100, Buffer.alloc(50))],
    ['without an end', 'machine.MachineService/Hostname', headerOf(0)],
    ['in the middle of a stream’s message', 'machine.MachineService/EtcdRecover', headerOf(100, Buffer.alloc(50))],
  ])('is ended after the time for it: %s', async (_, method, bytes) => {
    const { path } = await serving({ requestTime: 20 })
    expect(await begun(path, method, bytes)).toEqual({
      status: 'DeadlineExceeded',
      message: 'the request was incomplete after 0.02 s',
    })
  })

  test('is charged to its client, which loses the largest when they exceed the limit', async () => {
    const { path, channel } = await serving()
    const session = rawSession(path)
    const half = headerOf(4 * mib, Buffer.alloc(4 * mib - 1))
    const calls = Array.from({ length: 5 }, () => begun(path, 'machine.MachineService/EtcdRecover', half, session))
    expect((await Promise.race(calls)).status).toBe('ResourceExhausted')
    expect((await channel.unary('machine.MachineService/Hostname', {})).messages[0]?.hostname).toBe('here')
  })
})

describe('a complete request', () => {
  const endless = [
    ...methods.slice(0, 1),
    unary('storage.StorageService/BlockDeviceWipe', readers, () => new Promise<never>(() => {})),
    clientStream('machine.MachineService/EtcdRecover', readers, async (requests) => {
      for await (const _ of requests) await new Promise<never>(() => {})
      return {}
    }),
  ]

  test.each([
    ['its fields', 'storage.StorageService/BlockDeviceWipe', Buffer.from('0a00'.repeat(9990), 'hex'), 30],
    ['the bytes of a message of its stream', 'machine.MachineService/EtcdRecover', encoded(3 * mib), 8],
  ] as const)('is charged to its client for as long as the call lasts: %s', async (_, method, message, count) => {
    const { path, channel } = await serving({ methods: endless })
    const session = rawSession(path)
    const frame = sealFrame(Buffer.concat([Buffer.alloc(frameHeader), message]))
    const calls = Array.from({ length: count }, () => begun(path, method, frame, session, true))
    let open: number = count
    for (const call of calls) call.then(() => open--)
    const { status, message: why } = await Promise.race(calls)
    expect([status, why]).toEqual(['ResourceExhausted', expect.stringContaining('waits for more than')])
    while (open > 9) await Bun.sleep(1)
    expect((await channel.unary('machine.MachineService/Hostname', {})).messages[0]?.hostname).toBe('here')
  })

  test('does not retain the chunk it arrived in', async () => {
    const path = join(folder, 'chunks')
    const clock = new RequestClock()
    const kept: Promise<Buffer>[] = []
    const listener = listen(
      { unix: path },
      { maxStreams: 10, welcome: () => ({ request: (stream) => kept.push(oneMessage(stream, clock, 100)) }) },
    )
    closers.push(() => listener.close())
    const session = rawSession(path)
    const request = session.request({ ':method': 'POST', ':path': '/' }, { endStream: false })
    const frame = headerOf(4, Buffer.from('abcd'))
    request.end(frame)
    while (kept.length === 0) await Bun.sleep(1)
    const message = await kept[0]!
    expect([message.toString(), message.buffer.byteLength]).toEqual(['abcd', 4])
  })
})

describe('a failure of', () => {
  const broken = () => {
    throw new Error('broken')
  }
  const observer: CallObserver = { began() {}, ended() {} }
  test.each<[string, Partial<ServerOptions>]>([
    ['the roles', { roles: broken }],
    ['an observer as a call begins', { observer: { ...observer, began: broken } }],
    ['an observer as a call is admitted', { observer: { ...observer, admitted: broken } }],
  ])('%s ends one call with the reason', async (_, options) => {
    let fails = true
    const chosen = Object.fromEntries(
      Object.entries(options).map(([name, value]) => [
        name,
        typeof value === 'function'
          ? () => (fails ? broken() : new Set(readers))
          : { ...observer, ...Object.fromEntries(Object.entries(value as object).map(([key, run]) => [key, () => fails && run()])) },
      ]),
    )
    const { channel } = await serving(chosen)
    expect(await failure(channel.unary('machine.MachineService/Hostname', {}))).toMatchObject({ status: 'Unknown', message: 'broken' })
    fails = false
    expect((await channel.unary('machine.MachineService/Hostname', {})).messages[0]?.hostname).toBe('here')
  })

  test('an observer after a call leaves its response unchanged', async () => {
    const { channel } = await serving({ observer: { ...observer, ended: broken } })
    for (let calls = 0; calls < 3; calls++)
      expect((await channel.unary('machine.MachineService/Hostname', {})).messages[0]?.hostname).toBe('here')
  })
})
