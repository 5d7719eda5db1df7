/** Nodes and the discovery service: real client, real server, and what the server gets to see. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { type Clock, makeClock } from '../../../src/cosi/clock.ts'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { mergeAffiliates, observeMembers } from '../../../src/os/cluster/controllers/affiliate.ts'
import { discoverByService } from '../../../src/os/cluster/controllers/discovery-service.ts'
import { Affiliate } from '../../../src/os/cluster/resources/affiliate.ts'
import { DiscoveryConfig } from '../../../src/os/cluster/resources/discovery-config.ts'
import { Identity } from '../../../src/os/cluster/resources/identity.ts'
import { Member } from '../../../src/os/cluster/resources/member.ts'
import { KubeSpanEndpoint } from '../../../src/os/kubespan/resources/kube-span-endpoint.ts'
import { AddressStatus } from '../../../src/os/network/resources/address.ts'
import { MachineResetSignal } from '../../../src/os/runtime/resources/machine-reset-signal.ts'
import { newCA, newCertificate } from '../../../src/pki/certificate.ts'
import { tlsKey } from '../../../src/pki/key.ts'
import { discoveryMethods } from '../../../src/programs/discovery/methods.ts'
import { Registry } from '../../../src/programs/discovery/registry.ts'
import { connect } from '../../../src/rpc/client/channel.ts'
import type { TlsOptions } from '../../../src/rpc/client/dial.ts'
import { publicAuthorities } from '../../../src/rpc/client/public-authorities.ts'
import { type Server, servePlain, serveTls } from '../../../src/rpc/server/server.ts'

const key = Buffer.alloc(32, 9)
let registry: Registry
const servers: Server[] = []
const nodes: Runtime[] = []

async function serve(redirect?: string): Promise<string> {
  const methods = discoveryMethods(registry, { redirect })
  const server = await servePlain(
    { host: '127.0.0.1', port: 0 },
    { methods, store: new Store(), log: silent, roles: () => new Set<never>() },
  )
  servers.push(server)
  return `127.0.0.1:${server.port}`
}

beforeEach(() => {
  registry = new Registry()
})
afterEach(async () => {
  for (const os of nodes.splice(0)) os.stop()
  for (const server of servers.splice(0)) await server.close()
})

const secretName = 'node-with-a-secret-name'
const affiliate = (nodeId: string, last: number) => ({
  nodeId,
  addresses: [`192.168.77.${last}`],
  hostname: `${secretName}-${nodeId}`,
  nodename: `${secretName}-${nodeId}`,
  operatingSystem: 'Ichor (v1.13.0)',
  machineType: 'worker' as const,
  kubespan: {
    publicKey: Buffer.alloc(32, last).toString('base64'),
    address: `fd00::${last}`,
    additionalAddresses: [`10.244.${last}.0/24`],
    endpoints: [`192.168.77.${last}:51820`],
    excludeAdvertisedNetworks: [],
  },
})

function node(nodeId: string, last: number, serviceEndpoint: string, tls?: TlsOptions, clock?: Clock) {
  const store = new Store()
  const os = new Runtime(store, { log: silent, clock })
  nodes.push(os)
  os.register(
    discoverByService((config) => connect({ address: config.serviceEndpoint, tls })),
    mergeAffiliates,
    observeMembers,
  )
  os.start()
  store.put(DiscoveryConfig, 'cluster', {
    discoveryEnabled: true,
    registryKubernetesEnabled: false,
    registryServiceEnabled: true,
    serviceEndpoint,
    serviceEndpointInsecure: true,
    serviceEncryptionKey: key,
    serviceClusterID: 'cluster-1',
  })
  store.put(Identity, 'local', { nodeId })
  store.put(Affiliate, nodeId, affiliate(nodeId, last))
  return store
}

const until = <T>(store: Store, type: any, id: string, holds: (spec: any) => boolean = () => true, namespace?: string): Promise<T> =>
  store.until(type, id, (resource: any) => resource !== undefined && holds(resource.spec), {
    namespace,
    signal: AbortSignal.timeout(60_000),
  }) as Promise<T>

describe('nodes of a cluster', () => {
  test('find each other, publish where they see each other, and are forgotten when they leave', async () => {
    const service = await serve()
    const [a, b] = [node('a', 1, service), node('b', 2, service)]
    await until(a, Member, `${secretName}-b`)
    await until(b, Member, `${secretName}-a`)
    const seen = a.get(Affiliate, 'b')!.spec
    expect(seen).toEqual(affiliate('b', 2))
    expect(a.get(AddressStatus, `service/${service}`, { namespace: 'cluster' })?.spec.address).toBe('127.0.0.1/32')
    // Two nodes see b at the same place: the server keeps it once.
    const c = node('c', 3, service)
    await until(c, Affiliate, 'b')
    for (const store of [a, c]) store.put(KubeSpanEndpoint, 'b', { affiliateID: 'b', endpoint: '203.0.113.5:40000' })
    await until(c, Affiliate, 'b', (spec) => spec.kubespan.endpoints.length === 2)
    await until(a, Affiliate, 'b', (spec) => spec.kubespan.endpoints.length === 2)
    expect(registry.list('cluster-1').find(({ id }) => id === 'b')?.endpoints).toHaveLength(2)
    const gone = new Promise<void>((resolve) => {
      a.subscribe(Affiliate, () => a.get(Affiliate, 'b') ?? resolve(), { only: 'b' })
    })
    b.put(MachineResetSignal, 'machine', {})
    await gone
    expect(registry.list('cluster-1').map(({ id }) => id)).not.toContain('b')
  })

  test.each([86_400_000, -86_400_000])('announce themselves in time when the wall clock is stepped by %d ms', async (step) => {
    const time = { elapsed: 0, wall: Date.UTC(2026, 0, 1) }
    registry = new Registry(() => time.elapsed)
    const clock = makeClock({ elapsed: () => time.elapsed, now: () => new Date(time.wall) })
    const a = node('a', 1, await serve(), undefined, clock)
    await until(a, AddressStatus, `service/${a.get(DiscoveryConfig, 'cluster')!.spec.serviceEndpoint}`, () => true, 'cluster')
    const announced = Promise.withResolvers<void>()
    registry.subscribe('cluster-1', { from: '', changed: () => announced.resolve(), ended: announced.reject })
    if (registry.list('cluster-1').length > 0) announced.resolve()
    await announced.promise
    time.elapsed += 16 * 60_000
    time.wall += 16 * 60_000 + step
    a.put(KubeSpanEndpoint, 'a', { affiliateID: 'a', endpoint: '203.0.113.5:40000' }) // a round
    await nodes[0]!.settled()
    time.elapsed += 20 * 60_000
    registry.sweep()
    expect(registry.list('cluster-1').map(({ id }) => id)).toEqual(['a'])
  })

  test('go where the service sends them', async () => {
    const moved = await serve()
    const old = await serve(moved)
    const [a] = [node('a', 1, old), node('b', 2, moved)]
    await until(a, Member, `${secretName}-b`)
    expect(registry.list('cluster-1')).toHaveLength(2)
  })

  test('trust a service by an authority of their own, and none without', async () => {
    const ca = newCA({ subject: { organizations: ['discovery'] } })
    const own = newCertificate({
      ca,
      subject: { commonName: 'discovery' },
      sans: { ips: ['127.0.0.1'] },
      usage: ['serverAuth'],
      lifetime: 3600_000,
    })
    const options = { methods: discoveryMethods(registry), store: new Store(), log: silent, roles: () => new Set<never>() }
    const server = await serveTls({ host: '127.0.0.1', port: 0 }, { cert: own.crt, key: tlsKey(own.key) }, options)
    servers.push(server)
    const service = `127.0.0.1:${server.port}`
    node('stranger', 9, service, { ca: publicAuthorities })
    const roots = `${publicAuthorities}\n${ca.crt}`
    const [a] = [node('a', 1, service, { ca: roots }), node('b', 2, service, { ca: roots })]
    await until(a, Member, `${secretName}-b`)
    expect(
      registry
        .list('cluster-1')
        .map(({ id }) => id)
        .sort(),
    ).toEqual(['a', 'b'])
  })

  test('publish themselves again to a service that was restarted', async () => {
    const service = await serve()
    const a = node('a', 1, service)
    await until(a, AddressStatus, `service/${service}`, () => true, 'cluster')
    const b = node('b', 2, service)
    await until(a, Member, `${secretName}-b`)
    await servers.shift()!.close(0)
    registry = new Registry()
    const port = Number(service.split(':')[1])
    const options = { methods: discoveryMethods(registry), store: new Store(), log: silent, roles: () => new Set<never>() }
    servers.push(await servePlain({ host: '127.0.0.1', port }, options))
    const both = async () => {
      while (registry.list('cluster-1').filter(({ data }) => data.length > 0).length < 2) await Bun.sleep(10)
    }
    await both()
    await until(b, Member, `${secretName}-a`)
  }, 60_000)
})

test('the server sees ciphertext and addresses, nothing else', async () => {
  const sent: unknown[] = []
  const watching = new Proxy(registry, {
    get: (target, name) => {
      const value = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        sent.push(...args)
        return value.apply(target, args)
      }
    },
  })
  const methods = discoveryMethods(watching)
  const server = await servePlain(
    { host: '127.0.0.1', port: 0 },
    { methods, store: new Store(), log: silent, roles: () => new Set<never>() },
  )
  servers.push(server)
  const [a, b] = [node('a', 1, `127.0.0.1:${server.port}`), node('b', 2, `127.0.0.1:${server.port}`)]
  await until(a, Member, `${secretName}-b`)
  await until(b, Member, `${secretName}-a`)
  const updates = sent.filter(
    (one): one is { data: Uint8Array; endpoints: Uint8Array[] } => typeof one === 'object' && one !== null && 'data' in one,
  )
  expect(updates.length).toBeGreaterThanOrEqual(2)
  const bytes = Buffer.concat(updates.flatMap(({ data, endpoints }) => [data ?? new Uint8Array(), ...endpoints]))
  // Everything else that was sent: the address, the ids of cluster and affiliates, and times.
  const words = sent.filter((one) => typeof one === 'string')
  expect([...new Set(words)].sort()).toEqual(['7f000001', 'a', 'b', 'cluster-1'])
  for (const secret of [secretName, 'Ichor', 'worker', affiliate('a', 1).kubespan.publicKey]) expect(bytes.includes(secret)).toBe(false)
  for (const address of [Buffer.of(192, 168, 77, 1), Buffer.of(10, 244, 1, 0)]) expect(bytes.includes(address)).toBe(false)
  for (const { data, endpoints } of updates) {
    expect(data.length).toBeGreaterThan(28)
    for (const endpoint of endpoints) expect(endpoint.length % 16).toBe(0)
  }
})
