/** Clients that do their worst within their rights, and what others get meanwhile. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { tlsKey } from '../../../src/pki/key.ts'
import { dialLimits } from '../../../src/programs/apid/dials.ts'
import { maxStreams } from '../../../src/programs/apid/limits.ts'
import type { Channel } from '../../../src/rpc/client/channel.ts'
import { encode } from '../../../src/rpc/codec.ts'
import { frameHeader, sealFrame } from '../../../src/rpc/frame.ts'
import { methodShape } from '../../../src/rpc/schema.ts'
import { flag, frameType } from '../../../src/wire/http2/frame.ts'
import { RawClient } from '../../rpc/http2/raw-client.ts'
import { freePort } from '../../support/free-port.ts'
import { clientCertificate, failure, type Node, startNode } from './nodes.ts'

let node: Node
let other: Node
let maintenance: Node
const clients: RawClient[] = []

beforeAll(async () => {
  const port = await freePort()
  node = await startNode('127.0.0.1', port)
  other = await startNode('127.0.0.2', port)
  maintenance = await startNode('127.0.0.4', port, 'maintenance')
})
afterEach(async () => {
  for (const client of clients) client.close()
  await Promise.all(clients.splice(0).map((client) => client.end()))
})
afterAll(async () => {
  for (const each of [node, other, maintenance]) await each.close()
})

const reader = clientCertificate(['os:reader'])
const grpc = { 'content-type': 'application/grpc', te: 'trailers' }
const logs = '/machine.MachineService/Logs'

/** A connection of one reader that takes nothing of any answer. */
async function connect({ address, port }: Node, settings: { initialWindowSize?: number } = { initialWindowSize: 0 }): Promise<RawClient> {
  const client = await RawClient.connect({ hostname: address, port, tls: { cert: reader.crt, key: tlsKey(reader.key) } }, { settings })
  clients.push(client)
  return client
}

function call(client: RawClient, stream: number, path: string, metadata: Record<string, string>, request: object, end = true): void {
  client.request(stream, { ':path': path, ...grpc, ...metadata }, flag.END_HEADERS)
  const body = sealFrame(encode(methodShape(path).request, request, frameHeader))
  client.frame(frameType.DATA, end ? flag.END_STREAM : 0, stream, body)
}

async function unread(client: RawClient, count: number, metadata: Record<string, string> = {}): Promise<void> {
  for (let n = 0; n < count; n++) call(client, 1 + 2 * n, logs, metadata, { id: 'long' })
  await client.until(() => client.frames.filter((line) => /^(HEADERS|RST_STREAM)/.test(line)).length >= count)
}

async function answers(channel: Channel, metadata: Record<string, string> = {}): Promise<void> {
  for (let n = 0; n < 5; n++) {
    const { messages } = await channel.unary('machine.MachineService/Hostname', {}, { metadata, deadline: 5_000 })
    expect(messages).toHaveLength(1)
  }
}

test('hundreds of answers that nobody reads hold up nobody, and the greediest of them are ended', async () => {
  const admin = node.channel(clientCertificate(['os:admin']))
  await answers(admin)
  const greedy = await Promise.all([1, 2, 3].map(() => connect(node)))
  for (const client of greedy) await unread(client, 250)
  await answers(admin)
  await Promise.any(greedy.map((client) => client.until(() => client.frames.some((line) => line.endsWith('ENHANCE_YOUR_CALM')))))
  expect(greedy.some(({ closed }) => closed)).toBe(false)
  await answers(node.channel(clientCertificate(['os:reader'])))
})

test('the same through a second node holds up nobody there, nor on the way', async () => {
  const admin = node.channel(clientCertificate(['os:admin']))
  const greedy = await Promise.all([1, 2, 3].map(() => connect(node)))
  for (const client of greedy) await unread(client, 250, { node: '127.0.0.2' })
  await answers(admin, { node: '127.0.0.2' })
  await answers(other.channel(clientCertificate(['os:admin'])))
})

test('the same without a certificate, in maintenance, holds up nobody', async () => {
  const greedy = await Promise.all([1].map(() => connect(maintenance)))
  for (const client of greedy) await unread(client, 250)
  await answers(maintenance.channel(undefined))
})

describe('a request to several nodes', () => {
  const hostname = '/machine.MachineService/Hostname'
  const nodes = { nodes: '127.0.0.8,localhost' }
  let hurried: Node
  beforeAll(async () => {
    hurried = await startNode('127.0.0.8', await freePort(), 'controlplane', { requestTime: 30 })
  })
  afterAll(() => hurried.close())

  test('that is too large is refused by its first bytes, and reaches none of them', async () => {
    const client = await connect(hurried, {})
    client.request(1, { ':path': hostname, ...grpc, ...nodes }, flag.END_HEADERS)
    client.frame(frameType.DATA, 0, 1, Buffer.from([0, 0, 1, 0, 1]))
    await client.until(() => client.headers.has(1))
    expect(client.headers.get(1)).toMatchObject({
      'grpc-status': '8',
      'grpc-message': 'message of 65537 bytes is larger than the limit of 65536',
    })
    expect(hurried.seen.roles).toEqual([])
  })

  test('that is never whole is ended after the time for it', async () => {
    const client = await connect(hurried, {})
    for (const [stream, bytes] of [Buffer.alloc(0), Buffer.from([0, 0, 0, 0, 9, 1]), Buffer.from([0, 0, 0, 0, 0])].entries()) {
      client.request(1 + 2 * stream, { ':path': hostname, ...grpc, ...nodes }, flag.END_HEADERS)
      if (bytes.length > 0) client.frame(frameType.DATA, 0, 1 + 2 * stream, bytes)
    }
    await client.until(() => [1, 3, 5].every((stream) => client.headers.has(stream)))
    for (const stream of [1, 3, 5])
      expect(client.headers.get(stream)).toMatchObject({ 'grpc-status': '4', 'grpc-message': 'the request was incomplete after 0.03 s' })
    expect(hurried.seen.roles).toEqual([])
  })
})

describe('a call to many nodes', () => {
  /** Accepts connections and sends nothing. */
  let silent: Bun.TCPSocketListener
  let came = 0
  let dialing: Node
  const names = (count: number, at: number) => Array.from({ length: count }, (_, n) => `127.1.${at + (n >> 7)}.${1 + (n & 127)}`).join(',')
  beforeAll(async () => {
    silent = Bun.listen({ hostname: '0.0.0.0', port: 0, socket: { open: () => void came++, data() {} } })
    dialing = await startNode('127.0.0.9', await freePort(), 'controlplane', { remotePort: silent.port })
  })
  afterAll(async () => {
    silent.stop(true)
    await dialing.close()
  })
  const arrived = async (count: number) => {
    while (came < count) await Bun.sleep(5)
    await Bun.sleep(50)
    return came
  }

  test('dials few of them at once for one client, and others do not wait for it', async () => {
    call(await connect(dialing, {}), 1, '/machine.MachineService/Hostname', { nodes: names(200, 1) }, {})
    expect(await arrived(dialLimits.atOnce)).toBe(dialLimits.atOnce)
    const other = dialing.channel(clientCertificate(['os:admin']))
    // It is given up when it is seen, not after a time: a deadline could pass before it dials.
    const seen = new AbortController()
    const options = { metadata: { node: '127.1.9.1' }, signal: seen.signal }
    const answer = failure(other.unary('machine.MachineService/Hostname', {}, options))
    expect(await arrived(dialLimits.atOnce + 1)).toBe(dialLimits.atOnce + 1)
    seen.abort()
    expect(await answer).toMatchObject(['Canceled', expect.any(String)])
  })

  test('holds its headers once, not for each node', async () => {
    const client = await connect(dialing, {})
    const many = Object.fromEntries(Array.from({ length: 250 }, (_, n) => [`x-${n}`, 'y']))
    Bun.gc(true)
    const before = process.memoryUsage().heapUsed
    call(client, 1, '/machine.MachineService/Hostname', { nodes: names(700, 20), ...many }, {})
    await answers(dialing.channel(clientCertificate(['os:admin'])))
    Bun.gc(true)
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(4 << 20)
  })
})

test('calls that never end take no more than their share', async () => {
  const client = await connect(node, { initialWindowSize: 65_535 })
  for (let n = 0; n <= maxStreams; n++) call(client, 1 + 2 * n, '/machine.MachineService/Stats', {}, {})
  await client.until(() => client.frames.includes(`RST_STREAM ${1 + 2 * maxStreams} REFUSED_STREAM`))
  const others = await Promise.all([1, 2, 3].map(() => connect(node, { initialWindowSize: 65_535 })))
  for (const each of others) for (let n = 0; n < maxStreams; n++) call(each, 1 + 2 * n, '/machine.MachineService/Stats', {}, {})
  for (const each of others) {
    each.frame(frameType.PING, 0, 0, Buffer.alloc(8))
    await each.until(() => each.frames.includes('PING'))
  }
  const fifth = await connect(node, { initialWindowSize: 65_535 })
  call(fifth, 1, '/machine.MachineService/Hostname', {}, {})
  await fifth.until(() => fifth.headers.has(1))
  expect(fifth.headers.get(1)).toMatchObject({
    'grpc-status': '8',
    'grpc-message': expect.stringContaining('too many calls open: at most 1024 at a time'),
  })
  await answers(node.channel(clientCertificate(['os:admin'])))
})
