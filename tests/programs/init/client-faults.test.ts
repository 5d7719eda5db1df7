/**
 * Each use of a socket by a client or server of init fails once, in turn, before servers that answer: a use on the way may fail, with
 * an error and in time; the next ones succeed, and nothing is left unhandled.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createSocket } from 'node:dgram'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { core, kubeClient } from '../../../src/kube/client.ts'
import { RemoteRegistry } from '../../../src/oci/remote-registry.ts'
import { writeAffiliate } from '../../../src/os/cluster/discovery/record.ts'
import { ServiceView, watchService } from '../../../src/os/cluster/discovery/watch-service.ts'
import { etcdClient } from '../../../src/os/etcd/client.ts'
import { TcpBalancer } from '../../../src/os/k8s/tcp-balancer.ts'
import { connectTcp } from '../../../src/os/network/controllers/probe.ts'
import { LengthReader, withLength } from '../../../src/os/network/dns/framing.ts'
import { Resolver } from '../../../src/os/network/dns/resolver.ts'
import { fetchText } from '../../../src/os/network/platform/transport.ts'
import { askTrustd } from '../../../src/os/secrets/controllers/api.ts'
import { queryTimeServer } from '../../../src/os/time/time-server.ts'
import { discoveryMethods } from '../../../src/programs/discovery/methods.ts'
import { Registry } from '../../../src/programs/discovery/registry.ts'
import { connect } from '../../../src/rpc/client/channel.ts'
import { bidi, serverStream, unary } from '../../../src/rpc/server/method.ts'
import { servePlain, serveTls } from '../../../src/rpc/server/server.ts'
import { httpProbe, tcpProbe } from '../../../src/supervise/probe.ts'
import { ntpMode, readNtp, toNtpTime, writeNtp } from '../../../src/wire/ntp.ts'
import { authority, clientCertificate, freePort, identityOf } from '../apid/nodes.ts'
import { replaceSockets, restoreSockets, SocketFaults } from '../runtime-sockets.ts'

/** What uses sockets, until it is closed; `use` uses each of them. */
interface Client {
  use(signal: AbortSignal): Promise<unknown>
  close?(): unknown
}

const faults = new SocketFaults()
const unhandled: unknown[] = []
const note = (error: unknown) => unhandled.push(error)
const closing: (() => unknown)[] = []
/** Ports of servers that answer, by name. */
const ports = new Map<string, number>()
const at = (name: string) => ports.get(name)!
const content = Buffer.from('content of a layer')
const digest = `sha256:${new Bun.CryptoHasher('sha256').update(content).digest('hex')}`

beforeAll(async () => {
  process.on('unhandledRejection', note)
  process.on('uncaughtException', note)
  const http = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: answerHttp })
  ports.set('http', http.port!)
  const { certificate: cert, key } = identityOf('127.0.0.1', 'controlplane').server
  const tls = { cert, key, ca: authority.crt, clients: 'required' as const }
  const served = { methods: etcdMethods, store: new Store(), log: silent, roles: () => new Set(['os:admin'] as const) }
  const etcd = await serveTls({ port: 0, host: '127.0.0.1' }, tls, served)
  ports.set('etcd', etcd.port)
  const trust = await serveTls({ port: 0, host: '127.0.0.1' }, { cert, key }, { ...served, methods: trustdMethods })
  ports.set('trustd', 50_001)
  const discovery = await servePlain({ port: 0, host: '127.0.0.1' }, { ...served, methods: discoveryMethods(new Registry()) })
  ports.set('discovery', discovery.port)
  const time = await Bun.udpSocket({ hostname: '127.0.0.1', port: 0, socket: { data: answerTime } })
  ports.set('time', time.port)
  const dns = await Bun.udpSocket({
    hostname: '127.0.0.1',
    port: 0,
    socket: { data: (socket, query, port, from) => void socket.send(truncatedAnswer(query), port, from) },
  })
  const dnsTcp = Bun.listen({
    hostname: '127.0.0.1',
    port: dns.port,
    socket: { data: (socket, chunk) => void socket.write(withLength(answerTo(chunk.subarray(2)))) },
  })
  ports.set('dns', dns.port)
  const silentTime = await Bun.udpSocket({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  ports.set('silent', silentTime.port)
  closing.push(
    () => http.stop(true),
    () => etcd.close(),
    () => trust.close(),
    () => discovery.close(),
    () => time.close(),
    () => silentTime.close(),
    () => dns.close(),
    () => dnsTcp.stop(true),
  )
  for (const name of ['balancer', 'resolver']) ports.set(name, await freePort())
  const fails = (use: string) => {
    const name = [...ports].find(([, port]) => use.includes(`127.0.0.1:${port}`))
    return name !== undefined && faults.fails(use.replace(`127.0.0.1:${name[1]}`, name[0]))
  }
  // The port of trustd cannot be chosen.
  replaceSockets(fails, { tcp: (address) => (address.port === at('trustd') ? { ...address, port: trust.port } : address) })
})
afterAll(async () => {
  restoreSockets()
  for (const close of closing) await close()
  process.off('unhandledRejection', note)
  process.off('uncaughtException', note)
})

const admin = ['os:admin'] as const
let affiliates = 0
const trustdMethods = [
  unary('securityapi.SecurityService/Certificate', 'anyone', ({ csr }) => ({
    ca: Buffer.alloc(0),
    crt: Buffer.from(`signed ${Buffer.from(csr)}`),
  })),
]
const etcdMethods = [
  unary('etcdserverpb.Cluster/MemberList', admin, () => ({ members: [{ ID: '1', name: 'one', peerURLs: [], clientURLs: [] }] })),
  unary('etcdserverpb.Lease/LeaseGrant', admin, () => ({ ID: '7', TTL: 8 })),
  unary('etcdserverpb.Lease/LeaseRevoke', admin, () => ({})),
  unary('etcdserverpb.KV/Txn', admin, () => ({ succeeded: true, header: { revision: 1 } })),
  unary('etcdserverpb.KV/Range', admin, () => ({ kvs: [] })),
  bidi('etcdserverpb.Lease/LeaseKeepAlive', admin, async function* (requests) {
    for await (const { ID } of requests) yield { ID, TTL: 8 }
  }),
  serverStream('etcdserverpb.Maintenance/Snapshot', admin, async function* () {
    for (let n = 0; n < 5; n++) yield { blob: Buffer.alloc(10_000) }
  }),
]

function answerHttp(request: Request): Response {
  const { pathname, searchParams, origin } = new URL(request.url)
  if (pathname === '/token') return Response.json({ token: 'known' })
  if (pathname.startsWith('/v2/') && request.headers.get('authorization') !== 'Bearer known')
    return new Response('', { status: 401, headers: { 'www-authenticate': `Bearer realm="${origin}/token",service="x"` } })
  if (pathname.startsWith('/v2/')) return new Response(content)
  if (searchParams.get('watch')) return new Response(`${JSON.stringify({ type: 'ADDED', object: { metadata: { name: 'a' } } })}\n`)
  if (pathname === '/text') return new Response('a text')
  return Response.json({ metadata: { name: 'x', resourceVersion: '7' }, items: [] })
}

function answerTime(socket: Bun.udp.Socket<'buffer'>, datagram: Buffer, port: number, address: string): void {
  const { transmitTime } = readNtp(datagram)
  const there = toNtpTime(BigInt(Date.now()) * 1_000_000n)
  socket.send(
    writeNtp({ mode: ntpMode.server, stratum: 2, originTime: transmitTime, receiveTime: there, transmitTime: there }),
    port,
    address,
  )
}

/** A query for the A record of example.com, and its answer. */
const question = Buffer.from(`${Buffer.from('example').toString('hex').replace(/^/, '07')}03636f6d0000010001`, 'hex')
const query = Buffer.concat([Buffer.from('123401000001000000000000', 'hex'), question])
const record = Buffer.from('c00c000100010000003c00045db8d822', 'hex')
function answerTo(requested: Uint8Array): Buffer {
  const head = Buffer.from('000081800001000100000000', 'hex')
  head.set(requested.subarray(0, 2))
  return Buffer.concat([head, requested.subarray(12), record])
}
/** The answer over UDP: too long, to be requested over TCP. */
function truncatedAnswer(requested: Uint8Array): Buffer {
  const head = Buffer.from('000083800001000000000000', 'hex')
  head.set(requested.subarray(0, 2))
  return Buffer.concat([head, requested.subarray(12)])
}

const clients: Record<string, () => Client | Promise<Client>> = {
  etcd() {
    const { crt, key } = clientCertificate(['os:admin'])
    const etcd = etcdClient([`127.0.0.1:${at('etcd')}`], { ca: authority.crt, cert: crt, key: key.replaceAll('ED25519 ', '') })
    return {
      async use() {
        expect(await etcd.members()).toHaveLength(1)
        let size = 0
        for await (const blob of etcd.snapshot()) size += blob.length
        expect(size).toBe(50_000)
        expect(await etcd.withMutex('one', () => Bun.sleep(5).then(() => 'done'))).toBe('done')
      },
      close: () => etcd.close(),
    }
  },
  Kubernetes() {
    const client = kubeClient({ server: `http://127.0.0.1:${at('http')}`, ca: '' })
    return {
      async use(signal) {
        const { resourceVersion } = await client.list(core.node, {}, { signal })
        const events = []
        for await (const event of client.watch(core.node, { resourceVersion }, { signal })) events.push(event.type)
        expect(events).toEqual(['ADDED'])
        expect(
          await client.apply(core.node, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'x' } }, { fieldManager: 'test' }, { signal }),
        ).toMatchObject({ metadata: { name: 'x' } })
      },
      close: () => client.close(),
    }
  },
  registry: () => ({
    async use() {
      const registry = new RemoteRegistry({ hosts: () => [{ url: `http://127.0.0.1:${at('http')}` }] })
      expect(await registry.smallBlob({ domain: 'registry.test', repository: 'a', tag: 'v1' }, digest)).toEqual(content)
    },
  }),
  'platform metadata': () => ({
    use: async (signal) => expect(await fetchText(`http://127.0.0.1:${at('http')}/text`, { signal })).toBe('a text'),
  }),
  'time server': () => ({
    async use() {
      const now = () => BigInt(Date.now()) * 1_000_000n
      expect(await queryTimeServer(`127.0.0.1:${at('time')}`, { now, timeout: 200 })).toMatchObject({ stratum: 2 })
    },
  }),
  resolver: () => {
    const resolver = new Resolver()
    resolver.use([`127.0.0.1:${at('dns')}`])
    return {
      async use() {
        await resolver.listen([`127.0.0.1:${at('resolver')}`])
        resolver.use([])
        resolver.use([`127.0.0.1:${at('dns')}`])
        expect((await overUdp(at('resolver'))).subarray(12)).toEqual(answerTo(query).subarray(12))
        expect((await overTcp(at('resolver'))).subarray(12)).toEqual(answerTo(query).subarray(12))
      },
      close: () => resolver.listen([]),
    }
  },
  balancer: () => {
    const balancer = new TcpBalancer({ hostname: '127.0.0.1', port: at('balancer'), retry: 5 })
    balancer.setUpstreams([{ host: '127.0.0.1', port: at('http') }])
    return {
      async use() {
        balancer.listen(500)
        expect(await balancer.check()).toBe(true)
        const response = await fetch(`http://127.0.0.1:${at('balancer')}/text`, { keepalive: false, signal: AbortSignal.timeout(1_000) })
        expect(await response.text()).toBe('a text')
      },
      close: () => balancer.close(),
    }
  },
  'discovery service': () => {
    const key = Buffer.alloc(32, 9)
    const config = { discoveryEnabled: true, registryKubernetesEnabled: false, registryServiceEnabled: true }
    const service = { serviceEndpoint: `127.0.0.1:${at('discovery')}`, serviceEncryptionKey: key, serviceClusterID: 'c' }
    const dial = () => connect({ address: service.serviceEndpoint })
    const view = new ServiceView({ ...config, ...service }, 'self', dial)
    const stop = new AbortController()
    const running = watchService(view, { wake() {}, report() {}, log: silent }, stop.signal)
    return {
      async use() {
        const nodeId = `node-${++affiliates}`
        const affiliateData = writeAffiliate(key, {
          nodeId,
          addresses: [],
          hostname: '',
          nodename: '',
          operatingSystem: '',
          machineType: 'worker',
        })
        const channel = dial()
        try {
          const update = { clusterId: 'c', affiliateId: nodeId, affiliateData, affiliateEndpoints: [], ttl: { seconds: 60, nanos: 0 } }
          await channel.unary('sidero.discovery.server.Cluster/AffiliateUpdate', update, { deadline: 1_000 })
          for (let left = 100; !view.others.has(nodeId); left--) {
            if (left === 0) throw new Error('the affiliate does not come')
            await Bun.sleep(5)
          }
        } finally {
          channel.close()
        }
      },
      async close() {
        stop.abort()
        await running
      },
    }
  },
  trustd: () => ({
    use: async () => expect(await askTrustd(['127.0.0.1'], authority.crt, 'token', 'request')).toBe('signed request'),
  }),
  'health checks': () => ({
    async use(signal) {
      await tcpProbe('127.0.0.1', at('http'))(signal)
      await httpProbe(`http://127.0.0.1:${at('http')}/text`)(signal)
      await connectTcp(`127.0.0.1:${at('http')}`, 500, signal)
    },
  }),
}

/** The answer of a name server over UDP. */
function overUdp(port: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const socket = createSocket('udp4')
  const timer = setTimeout(() => reject(new Error('no answer')), 500)
  socket.on('error', reject)
  socket.on('message', resolve)
  socket.send(query, port, '127.0.0.1')
  return promise.finally(() => {
    clearTimeout(timer)
    socket.close()
  })
}

/** The answer of a name server over TCP. */
async function overTcp(port: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const reader = new LengthReader((answer) => resolve(Buffer.from(answer)))
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      open: (opened) => void opened.write(withLength(query)),
      data: (_, chunk) => reader.push(chunk),
      close: () => reject(new Error('closed')),
      error: (_, error) => reject(error),
    },
  })
  return promise.finally(() => socket.end())
}

/** Uses a client until it succeeds three times in a row. */
async function succeeds(client: Client): Promise<void> {
  const end = performance.now() + 10_000
  for (let inRow = 0; inRow < 3; ) {
    try {
      await client.use(AbortSignal.timeout(2_000))
      inRow++
    } catch (error) {
      inRow = 0
      expect(error).toBeInstanceOf(Error)
      if (performance.now() > end) throw new Error(`${error}, after ${faults.fired}`, { cause: error })
      await Bun.sleep(10)
    }
  }
  await Bun.sleep(0)
  expect(unhandled.splice(0)).toEqual([])
}

test.each(Object.keys(clients))(
  '%s: each use of a socket fails once',
  async (name) => {
    faults.choose(() => false)
    const usual = await clients[name]!()
    await succeeds(usual)
    await usual.close?.()
    const uses = new Map(faults.uses)
    expect(uses.size).toBeGreaterThan(0)
    for (const [use, most] of uses)
      for (let which = 1; which <= Math.min(most, process.env.ICHOR_FAULTS === 'all' ? 12 : 2); which++) {
        faults.choose((each, nth) => each === use && nth === which)
        const client = await clients[name]!()
        await succeeds(client)
        await client.close?.()
      }
  },
  120_000,
)

test('a time server that is out of reach when it is queried again is an error', async () => {
  faults.choose((use, nth) => use === 'send silent' && nth === 2)
  const query = queryTimeServer(`127.0.0.1:${at('silent')}`, { now: () => 0n, timeout: 100 })
  await expect(query).rejects.toThrow(/ENETUNREACH/)
  expect(unhandled.splice(0)).toEqual([])
})
