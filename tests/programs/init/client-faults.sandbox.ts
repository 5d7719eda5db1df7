/**
 * Each use of a socket by a client or server of init fails once, in turn, before servers that answer: a use on the way may fail, with
 * an error and in time; the next ones succeed, and nothing is left unhandled.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createSocket } from 'node:dgram'
import { silent } from '../../../src/cosi/log.ts'
import { core, kubeClient } from '../../../src/kube/client.ts'
import { RemoteRegistry } from '../../../src/oci/remote-registry.ts'
import { writeAffiliate } from '../../../src/os/cluster/discovery/record.ts'
import { ServiceView, watchService } from '../../../src/os/cluster/discovery/watch-service.ts'
import { etcdClient } from '../../../src/os/etcd/client.ts'
import { TcpBalancer } from '../../../src/os/k8s/tcp-balancer.ts'
import { connectTcp } from '../../../src/os/network/controllers/probe.ts'
import { LengthReader, withLength } from '../../../src/os/network/dns/framing.ts'
import { readCode } from '../../../src/os/network/dns/message.ts'
import { Resolver } from '../../../src/os/network/dns/resolver.ts'
import { fetchText } from '../../../src/os/network/platform/transport.ts'
import { askTrustd } from '../../../src/os/secrets/controllers/api.ts'
import { queryTimeServer } from '../../../src/os/time/time-server.ts'
import { connect } from '../../../src/rpc/client/channel.ts'
import { httpProbe, tcpProbe } from '../../../src/supervise/probe.ts'
import { freePort } from '../../support/free-port.ts'
import { authority, clientCertificate } from '../apid/nodes.ts'
import { replaceSockets, restoreSockets, SocketFaults } from '../runtime-sockets.ts'
import { answerTo, content, digest, type Peers, query, startPeers } from './client-peers.ts'

/** What uses sockets, until it is closed; `use` uses each of them. */
interface Client {
  use(signal: AbortSignal): Promise<unknown>
  close?(): unknown
}

const faults = new SocketFaults()
const unhandled: unknown[] = []
const note = (error: unknown) => unhandled.push(error)
/** Ports of servers, by the name that uses of them have here. */
const ports = new Map<string, number>()
const at = (name: string) => ports.get(name)!
let peers: Peers
let affiliates = 0

beforeAll(async () => {
  process.on('unhandledRejection', note)
  process.on('uncaughtException', note)
  peers = await startPeers()
  for (const [name, port] of peers.ports) ports.set(name, port)
  ports.set('trustd', 50_001)
  for (const name of ['balancer', 'resolver']) ports.set(name, await freePort())
  const fails = (use: string) => {
    const name = [...ports].find(([, port]) => use.includes(`127.0.0.1:${port}`))
    return name !== undefined && faults.fails(use.replace(`127.0.0.1:${name[1]}`, name[0]))
  }
  // The port of trustd cannot be chosen.
  replaceSockets(fails, { tcp: (address) => (address.port === at('trustd') ? { ...address, port: peers.ports.get('trustd')! } : address) })
})
afterAll(async () => {
  restoreSockets()
  await peers.close()
  process.off('unhandledRejection', note)
  process.off('uncaughtException', note)
})

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
        for (const answer of [await overUdp(at('resolver')), await overTcp(at('resolver'))]) {
          if (readCode(answer) !== 0) throw new Error('the resolver has no answer')
          expect(answer.subarray(12)).toEqual(answerTo(query).subarray(12))
        }
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
        if (!(await balancer.check())) throw new Error('no upstream accepts')
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
  const timer = setTimeout(() => reject(new Error('no answer')), 100)
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
      // A use may fail, but never give a wrong result.
      if (!(error instanceof Error) || error.message.includes('expect(')) throw error
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
