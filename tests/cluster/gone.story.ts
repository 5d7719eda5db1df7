/**
 * Clients that vanish, and an apid that is killed, on a real cluster: for every method that streams some callers lose
 * their connection in its middle, and nothing of them stays behind: no call, no descriptor, no process, no file.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { type Channel, connect } from '../../src/rpc/client/channel.ts'
import { dial, type Target } from '../../src/rpc/client/dial.ts'
import { encode } from '../../src/rpc/codec.ts'
import { common, machine } from '../../src/rpc/enums.ts'
import { frameHeader, sealFrame } from '../../src/rpc/frame.ts'
import type { Session } from '../../src/rpc/http2/session.ts'
import type { Methods } from '../../src/rpc/messages.ts'
import { methodShape } from '../../src/rpc/schema.ts'
import type { RpcError } from '../../src/rpc/status.ts'
import { eventually, TestCluster } from './cluster.ts'

setDefaultTimeout(240_000)

const cluster = new TestCluster('gone')
let target: Target
let channel: Channel
let node = ''
let pause = ''

beforeAll(async () => {
  await cluster.create('--workers', '0', '--cidr', '10.67.0.0/24')
  const [first] = cluster.nodes()
  node = first?.name ?? ''
  const { context, contexts } = parse(readFileSync(join(cluster.home, 'config'), 'utf8'))
  const pem = (text: string) => Buffer.from(text, 'base64').toString()
  const { ca, crt, key } = contexts[context]
  target = { address: `${first?.ip}:50000`, tls: { ca: pem(ca), cert: pem(crt), key: pem(key) } }
  channel = connect(target)
  for await (const image of channel.serverStream('machine.ImageService/List', { containerd: pods }))
    if (image.name.includes('/pause:')) pause = image.name
  expect(pause).not.toBe('')
})
afterAll(async () => {
  channel?.close()
  await cluster.destroy()
  cluster.close()
})

const pods = { driver: common.ContainerDriver.CRI, namespace: common.ContainerdNamespace.NS_CRI }
const memory = { driver: common.ContainerDriver.CONTAINERD, namespace: common.ContainerdNamespace.NS_SYSTEM }
const addresses = { namespace: 'network', type: 'AddressStatuses.net.talos.dev' }

/** Every method that streams, with requests that keep it going for as long as it can; the flow of a caller's own goes on. */
const streaming: Record<string, () => object[]> = {
  'cluster.ClusterService/HealthCheck': () => [{ waitTimeout: { seconds: 60, nanos: 0 } }],
  'machine.DebugService/ContainerRun': () => [
    {
      spec: {
        containerd: pods,
        imageName: pause,
        args: ['/pause'],
        profile: machine.DebugContainerRunRequestSpec.Profile.PROFILE_PRIVILEGED,
      },
    },
  ],
  'machine.ImageService/List': () => [{ containerd: pods }],
  'machine.ImageService/Pull': () => [{ containerd: pods, imageRef: pause }],
  'machine.ImageService/Import': () => [{ containerd: memory }, { imageChunk: { bytes: Buffer.alloc(100_000) } }],
  'machine.LifecycleService/Install': () => [{}],
  'machine.LifecycleService/Upgrade': () => [{}],
  'machine.MachineService/Copy': () => [{ rootPath: '/usr' }],
  'machine.MachineService/DiskUsage': () => [{ paths: ['/'], recursionDepth: 20, all: true }],
  'machine.MachineService/Dmesg': () => [{ follow: true }],
  'machine.MachineService/EtcdRecover': () => [{ bytes: Buffer.alloc(100_000) }],
  'machine.MachineService/EtcdSnapshot': () => [{}],
  'machine.MachineService/Events': () => [{ tailEvents: -1 }],
  'machine.MachineService/ImageList': () => [{ namespace: common.ContainerdNamespace.NS_CRI }],
  'machine.MachineService/Kubeconfig': () => [{}],
  'machine.MachineService/List': () => [{ root: '/', recurse: true }],
  'machine.MachineService/Logs': () => [{ namespace: 'system', id: 'machined', follow: true }],
  'machine.MachineService/PacketCapture': () => [{ interface: 'eth0', snapLen: 100 }],
  'machine.MachineService/Read': () => [{ path: '/sbin/init' }],
  'cosi.resource.State/List': () => [addresses],
  'cosi.resource.State/Watch': () => [{ ...addresses, apiVersion: 1, options: { bootstrapContents: true } }],
}

/** Callers of each method; a leak shows so many times. */
const callers = 5
/** What comes and goes on a node anyway. */
const slack = callers - 1

interface Left {
  calls: number
  processes: number
  init: number
  apid: number
  files: number
}

/** What is there on the node now: calls of a method under way, processes, open descriptors of init and of apid, files in memory. */
async function left(path: string): Promise<Left> {
  const init = cluster.initOf(node)
  const apid = cluster.processIn(node, '/usr/bin/apid') ?? 0
  const descriptors = (pid: number) => readdirSync(`/proc/${pid}/fd`).length
  const { messages } = await channel.unary('ichor.v1.MetricsService/Metrics', {})
  const running = new RegExp(`^ichor_api_calls_running\\{method="${path}"\\} (\\d+)$`, 'm').exec(messages[0]?.text ?? '')
  return {
    calls: Number(running?.[1] ?? 0),
    processes: cluster.processesIn(node).length,
    init: descriptors(init),
    apid: descriptors(apid),
    files: ['tmp', 'run', 'system/run'].reduce((sum, folder) => sum + filesIn(`/proc/${init}/root/${folder}`), 0),
  }
}

/** Files below a folder, some levels deep. */
function filesIn(folder: string, levels = 3): number {
  try {
    return readdirSync(folder, { withFileTypes: true }).reduce(
      (sum, entry) => sum + (entry.isDirectory() && levels > 1 ? filesIn(join(folder, entry.name), levels - 1) : 1),
      0,
    )
  } catch {
    return 0 // it went meanwhile
  }
}

/** Begins a call on a connection of its own; resolves when something came of it, or nothing did for a while. */
async function begin(path: keyof Methods): Promise<Session> {
  const shape = methodShape(path)
  const session = await dial(target)
  const stream = session.request({
    ':method': 'POST',
    ':scheme': 'https',
    ':path': shape.path,
    ':authority': 'story',
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  for (const request of streaming[path]!()) stream.write(sealFrame(encode(shape.request, request, frameHeader)))
  if (!shape.clientStreams) stream.end()
  const { promise, resolve } = Promise.withResolvers<void>()
  // What comes is never released: a stream of much data stops in its middle.
  stream.read({ headers: () => resolve(), data: () => resolve(), end: () => resolve() })
  const quiet = setTimeout(resolve, 1000)
  await promise
  clearTimeout(quiet)
  return session
}

describe('callers that vanish in the middle leave nothing behind', () => {
  test('of every method of the contract that streams', async () => {
    const table = (await Bun.file(`${import.meta.dir}/../proto/contract/api-services.tsv`).text()).split('\n').slice(1).filter(Boolean)
    const rows = table
      .map((line) => line.split('\t'))
      .filter(([, , , client, server, , , , , , by]) => by === 'machined' && `${client}${server}` !== '00')
    expect(rows.map(([pkg, service, method]) => `${pkg}.${service}/${method}`).sort()).toEqual(Object.keys(streaming).sort())
  })

  test.each(Object.keys(streaming))('%s', async (name) => {
    const path = name as keyof Methods
    const before = await left(name)
    const sessions = await Promise.all(Array.from({ length: callers }, () => begin(path)))
    for (const session of sessions) session.destroy()
    await eventually(async () => {
      const after = await left(name)
      const more = Object.entries(after).filter(([what, count]) => count > before[what as keyof Left] + (what === 'calls' ? 0 : slack))
      if (more.length > 0) throw new Error(`before ${JSON.stringify(before)}, now ${JSON.stringify(after)}`)
    }, 180)
  })
})

test('apid killed during 64 calls fails those alone, and the next call works', async () => {
  const apid = cluster.processIn(node, '/usr/bin/apid')
  const watching = Array.from({ length: 64 }, async () => {
    const seen = Promise.withResolvers<void>()
    const ended = (async () => {
      for await (const _ of channel.serverStream('cosi.resource.State/Watch', {
        ...addresses,
        apiVersion: 1,
        options: { bootstrapContents: true },
      }))
        seen.resolve()
    })()
    ended.catch(() => {})
    await seen.promise
    return { ended }
  })
  const calls = await Promise.all(watching)
  process.kill(apid!, 'SIGKILL')
  const failures = await Promise.allSettled(calls.map(({ ended }) => ended))
  for (const failure of failures) {
    expect(failure.status).toBe('rejected')
    expect(((failure as PromiseRejectedResult).reason as RpcError).status).toBe('Unavailable')
  }
  await eventually(async () => {
    const { messages } = await channel.unary('machine.MachineService/Version', {}, { deadline: 5000 })
    expect(messages).toHaveLength(1)
  })
  expect(cluster.processIn(node, '/usr/bin/apid')).not.toBe(apid)
})
