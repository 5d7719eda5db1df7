import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { newCA } from '../../../src/pki/certificate.ts'
import type { Channel } from '../../../src/rpc/client/channel.ts'
import { freePort } from '../../support/free-port.ts'
import { authority, clientCertificate, failure, identityOf, type Node, startNode } from './nodes.ts'

let first: Node
let second: Node
let worker: Node
let maintenance: Node
let admin: Channel

beforeAll(async () => {
  const port = await freePort()
  first = await startNode('127.0.0.1', port)
  second = await startNode('127.0.0.2', port)
  worker = await startNode('127.0.0.3', port, 'worker')
  maintenance = await startNode('127.0.0.4', port, 'maintenance')
  admin = first.channel(clientCertificate(['os:admin']))
})
afterAll(async () => {
  for (const node of [first, second, worker, maintenance]) await node.close()
})

const hostname = (channel: Channel, metadata: Record<string, string | string[]> = {}) =>
  channel.unary('machine.MachineService/Hostname', {}, { metadata, deadline: 5_000 })

/** A number once it has stopped growing. */
async function settled(read: () => number): Promise<number> {
  for (let last = -1; ; ) {
    const now = read()
    if (now === last) return now
    last = now
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  return Array.fromAsync(stream)
}

test('a node receives the age of the last connection on the way to it, and of a new one where requested', async () => {
  const caller = first.channel(clientCertificate(['os:admin']))
  const age = async (node: Node, metadata: Record<string, string> = {}) => {
    await hostname(caller, metadata)
    return Number(node.seen.metadata['ichor-connection-age']?.[0])
  }
  await age(second, { node: '127.0.0.2' })
  await new Promise((resolve) => setTimeout(resolve, 60))
  expect(await age(first, { 'ichor-connection-age': '0' })).toBeGreaterThanOrEqual(50)
  const kept = await age(second, { node: '127.0.0.2' })
  expect(kept).toBeGreaterThanOrEqual(50)
  expect(await age(second, { node: '127.0.0.2', 'ichor-new-connection': '1' })).toBeLessThan(kept)
  await new Promise((resolve) => setTimeout(resolve, 60))
  await hostname(first.channel(clientCertificate(['os:reader'])), { node: '127.0.0.2', 'ichor-new-connection': '1' })
  expect(Number(second.seen.metadata['ichor-connection-age']?.[0])).toBeGreaterThanOrEqual(50)
})

test('a node hears of which authority its caller is, from the node that the caller came to', async () => {
  const { fingerprint256 } = new X509Certificate(authority.crt)
  const caller = first.channel(clientCertificate(['os:reader']))
  await hostname(caller)
  await hostname(caller, { node: '127.0.0.2', 'ichor-caller-authority': 'claimed' })
  for (const { seen } of [first, second]) expect(seen.metadata['ichor-caller-authority']).toEqual([fingerprint256])
})

describe('who comes in', () => {
  test('an administrator, as such', async () => {
    expect((await hostname(admin)).messages[0]?.hostname).toBe('127.0.0.1')
    expect(first.seen.roles).toEqual(['os:admin'])
  })

  test('a reader may look and not touch', async () => {
    const reader = first.channel(clientCertificate(['os:reader']))
    expect((await hostname(reader)).messages[0]?.hostname).toBe('127.0.0.1')
    expect(await failure(reader.unary('machine.MachineService/Reboot', {}))).toEqual(['PermissionDenied', 'not authorized'])
  })

  test('a claim to other roles in the metadata is not believed', async () => {
    const reader = first.channel(clientCertificate(['os:reader']))
    await hostname(reader, { 'talos-role': 'os:admin' })
    expect(first.seen.roles).toEqual(['os:reader'])
  })

  test("another node's apid is believed whom it speaks for", async () => {
    const apid = first.channel(clientCertificate(['os:impersonator']))
    await hostname(apid, { 'talos-role': ['os:operator', 'os:reader'], proxyfrom: 'elsewhere' })
    expect(first.seen.roles).toEqual(['os:operator', 'os:reader'])
  })

  test('a certificate of another authority with the same subject is refused, every time', async () => {
    const twin = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
    for (let i = 0; i < 12; i++) {
      const stranger = first.channel(clientCertificate(['os:admin'], { ca: twin }))
      expect((await failure(hostname(stranger)))[0]).toBe('Unavailable')
    }
  })

  test('an expired certificate is refused', async () => {
    const late = first.channel(clientCertificate(['os:admin'], { now: new Date(Date.now() - 3 * 86_400_000) }))
    expect((await failure(hostname(late)))[0]).toBe('Unavailable')
  })

  test('a caller without a certificate is refused', async () => {
    expect((await failure(hostname(first.channel(undefined))))[0]).toBe('Unavailable')
  })

  test('a certificate that may also serve, or may only serve, is refused', async () => {
    for (const usage of [['clientAuth', 'serverAuth'], ['serverAuth']] as ('clientAuth' | 'serverAuth')[][]) {
      const wrong = first.channel(clientCertificate(['os:admin'], { usage }))
      expect((await failure(hostname(wrong)))[0]).toBe('Unavailable')
    }
  })

  test('the gateway is known by its certificate: another name is not accepted', async () => {
    const elsewhere = first.channel(clientCertificate(['os:admin']), { serverName: '127.0.0.9' })
    expect(await failure(hostname(elsewhere))).toMatchObject(['Unavailable', expect.stringContaining('certificate is not for "127.0.0.9"')])
  })
})

describe('a call to one node', () => {
  test('reaches another node with the roles of the caller', async () => {
    expect((await hostname(admin, { node: '127.0.0.2' })).messages).toEqual([{ hostname: '127.0.0.2' }])
    expect(second.seen.roles).toEqual(['os:admin'])
    expect(second.seen.metadata.proxyfrom).toBeDefined()
    expect(second.seen.metadata.node).toBeUndefined()
  })

  test('named by its own address or name stays here', async () => {
    expect((await hostname(admin, { node: '127.0.0.1' })).messages[0]?.hostname).toBe('127.0.0.1')
    expect((await hostname(admin, { node: 'Name-of-127-0-0-1' })).messages[0]?.hostname).toBe('127.0.0.1')
  })

  test('fails as the node failed it', async () => {
    expect(await failure(admin.unary('machine.MachineService/Restart', { id: 'x' }, { metadata: { node: '127.0.0.2' } }))).toEqual([
      'NotFound',
      'no container "x" on 127.0.0.2',
    ])
  })

  test('streams', async () => {
    const replies = await collect(admin.serverStream('machine.MachineService/Logs', { id: 'x' }, { metadata: { node: '127.0.0.2' } }))
    expect(replies.map(({ bytes }) => Buffer.from(bytes).toString())).toEqual([
      'x one of 127.0.0.2',
      'x two of 127.0.0.2',
      'x three of 127.0.0.2',
    ])
  })

  test('streams much, both ways', async () => {
    let size = 0
    for await (const { bytes } of admin.serverStream('machine.MachineService/Read', {}, { metadata: { node: '127.0.0.2' } }))
      size += bytes.length
    expect(size).toBe(400 * 65536)
    const requests = Array.from({ length: 100 }, (_, i) => ({ stdinData: Buffer.alloc(20_000, i) }))
    const echoed = await collect(admin.bidi('machine.DebugService/ContainerRun', requests, { metadata: { node: '127.0.0.2' } }))
    expect(echoed.map(({ stdoutData }) => Buffer.from(stdoutData!))).toEqual(requests.map(({ stdinData }) => stdinData))
  })

  test('is held back by a caller that does not read, and ended by one that leaves', async () => {
    const stream = admin.serverStream('machine.MachineService/Read', {}, { metadata: { node: '127.0.0.2' } })
    await stream.next()
    expect(await settled(() => second.seen.sent)).toBeLessThan(350)
    await stream.return()
    const when = second.seen.sent
    expect(await settled(() => second.seen.sent)).toBeLessThan(when + 50)
  })

  test('ends at its deadline', async () => {
    expect((await failure(admin.unary('machine.MachineService/Stats', {}, { metadata: { node: '127.0.0.2' }, deadline: 50 })))[0]).toBe(
      'DeadlineExceeded',
    )
  })

  test('to a node that is not there is unavailable', async () => {
    expect(await failure(hostname(admin, { node: '127.0.0.99' }))).toMatchObject(['Unavailable', expect.stringContaining('127.0.0.99')])
  })

  test('names exactly one', async () => {
    expect(await failure(hostname(admin, { node: ['127.0.0.1', '127.0.0.2'] }))).toEqual([
      'InvalidArgument',
      '"node" metadata must hold exactly one node',
    ])
  })

  test('names an address or a host, nothing else', async () => {
    for (const node of ['../../etc', 'a b', 'unix:/x', 'x:50000', '-'])
      expect(await failure(hostname(admin, { node }))).toEqual(['InvalidArgument', 'a node is named by its address or its host name'])
  })
})

describe('a call to several nodes', () => {
  test('has the replies of all, each marked, in the order they were named', async () => {
    const { messages } = await hostname(admin, { nodes: ['127.0.0.2', '127.0.0.1'] })
    expect(messages.map(({ metadata, hostname }) => [metadata?.hostname, hostname])).toEqual([
      ['127.0.0.2', '127.0.0.2'],
      ['127.0.0.1', '127.0.0.1'],
    ])
  })

  test('holds the failure of one beside the reply of another', async () => {
    const { messages } = await hostname(admin, { nodes: ['127.0.0.1', '127.0.0.99'] })
    expect(messages[0]?.hostname).toBe('127.0.0.1')
    expect(messages[1]?.metadata).toMatchObject({ hostname: '127.0.0.99', status: { code: 14 } })
    expect(messages[1]?.metadata?.error).toStartWith('rpc error: code = Unavailable desc = connect to "127.0.0.99"')
  })

  test('has the replies of the others when one is silent until the deadline', async () => {
    const { messages } = await admin.unary(
      'machine.MachineService/Memory',
      {},
      { metadata: { nodes: ['127.0.0.1', '127.0.0.2'] }, deadline: 1000 },
    )
    expect(messages.map(({ metadata, meminfo }) => [metadata?.hostname, metadata?.error, String(meminfo?.memtotal)])).toEqual([
      ['127.0.0.1', '', '7'],
      ['127.0.0.2', expect.stringContaining('no answer within 800 ms'), 'undefined'],
    ])
  })

  test('keeps the metadata of the methods', async () => {
    const reply = await admin.unary('machine.MachineService/Restart', { id: 'y' }, { metadata: { nodes: ['127.0.0.1', '127.0.0.2'] } })
    expect(reply.messages.map(({ metadata }) => metadata?.status?.message)).toEqual([
      'no container "y" on 127.0.0.1',
      'no container "y" on 127.0.0.2',
    ])
  })

  test('streams the messages of all, each marked, and names the node whose stream broke', async () => {
    const replies = await collect(
      admin.serverStream('machine.MachineService/Logs', { id: 'broken' }, { metadata: { nodes: ['127.0.0.1', '127.0.0.2'] } }),
    )
    for (const node of ['127.0.0.1', '127.0.0.2']) {
      const own = replies.filter(({ metadata }) => metadata?.hostname === node)
      expect(own.map(({ bytes, metadata }) => Buffer.from(bytes).toString() || metadata?.error)).toEqual([
        `broken one of ${node}`,
        `broken two of ${node}`,
        `broken three of ${node}`,
        'rpc error: code = DataLoss desc = the log is broken',
      ])
    }
    expect(replies).toHaveLength(8)
  })

  test('sends what the caller streams to all', async () => {
    const requests = Array.from({ length: 50 }, () => ({ bytes: Buffer.alloc(50_000) }))
    const reply = await admin.clientStream('machine.MachineService/EtcdRecover', requests, {
      metadata: { nodes: ['127.0.0.1', '127.0.0.2'] },
    })
    expect(reply.messages.map(({ metadata }) => metadata?.hostname)).toEqual(['127.0.0.1', '127.0.0.2'])
  })

  test('is not for services whose replies cannot be merged', async () => {
    const call = collect(admin.serverStream('cosi.resource.State/List', {}, { metadata: { nodes: '127.0.0.1' } }))
    expect((await failure(call))[0]).toBe('InvalidArgument')
  })
})

describe('a worker', () => {
  test('answers for itself and forwards nothing', async () => {
    const channel = worker.channel(clientCertificate(['os:admin']))
    expect((await hostname(channel, { node: '127.0.0.3' })).messages[0]?.hostname).toBe('127.0.0.3')
    const beyond: Record<string, string | string[]>[] = [{ node: '127.0.0.1' }, { nodes: ['127.0.0.1', '127.0.0.3'] }]
    for (const metadata of beyond) expect(await failure(hostname(channel, metadata))).toEqual(['PermissionDenied', 'no request forwarding'])
  })

  test('is reached through a control plane node', async () => {
    expect((await hostname(admin, { node: '127.0.0.3' })).messages[0]?.hostname).toBe('127.0.0.3')
  })
})

describe('in maintenance', () => {
  test('anyone is a reader, whatever the certificate contains', async () => {
    for (const certificate of [undefined, clientCertificate(['os:admin']), clientCertificate(['os:impersonator'])]) {
      await hostname(maintenance.channel(certificate), { 'talos-role': 'os:admin' })
      expect(maintenance.seen.roles).toEqual(['os:reader'])
    }
  })

  test('nothing is forwarded', async () => {
    expect(await failure(hostname(maintenance.channel(undefined), { node: '127.0.0.1' }))).toEqual([
      'PermissionDenied',
      'no request forwarding',
    ])
  })

  test('it listens where the machine is managed, or nowhere', async () => {
    const port = await freePort()
    const node = await startNode('127.0.0.5', port, 'maintenance')
    const identity = identityOf('127.0.0.5', 'maintenance')
    await node.gateway.become({ ...identity, host: undefined })
    expect((await failure(hostname(node.channel(undefined))))[0]).toBe('Unavailable')
    await node.gateway.become({ ...identity, host: '127.0.0.7' })
    expect((await failure(hostname(node.channel(undefined))))[0]).toBe('Unavailable')
    await node.gateway.become({ ...identity, host: '127.0.0.5' })
    expect((await hostname(node.channel(undefined))).messages[0]?.hostname).toBe('127.0.0.5')
    await node.close()
  })

  test('ends for everyone who came in then', async () => {
    const port = await freePort()
    const node = await startNode('127.0.0.5', port, 'maintenance')
    const guest = node.channel(undefined)
    await hostname(guest)
    await node.gateway.become(identityOf('127.0.0.5', 'controlplane'))
    expect((await failure(hostname(guest)))[0]).toBe('Unavailable')
    expect((await hostname(node.channel(clientCertificate(['os:reader'])))).messages[0]?.hostname).toBe('127.0.0.5')
    await node.close()
  })
})

test('renewed certificates are shown to new callers while old connections go on', async () => {
  const port = await freePort()
  const node = await startNode('127.0.0.6', port)
  const before = node.channel(clientCertificate(['os:admin']))
  await hostname(before)
  const renewed = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
  const identity = identityOf('127.0.0.6', 'controlplane')
  await node.gateway.become({ ...identity, authorities: `${authority.crt}\n${renewed.crt}` })
  await hostname(before)
  expect((await hostname(node.channel(clientCertificate(['os:reader'], { ca: renewed })))).messages[0]?.hostname).toBe('127.0.0.6')
  await node.gateway.become({ ...identity, authorities: renewed.crt })
  expect((await failure(hostname(node.channel(clientCertificate(['os:admin'])))))[0]).toBe('Unavailable')
  await node.close()
})
