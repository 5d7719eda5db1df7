import { afterEach, beforeEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { discoveryMethods } from '../../../src/programs/discovery/methods.ts'
import { limits, Registry } from '../../../src/programs/discovery/registry.ts'
import { type Channel, connect } from '../../../src/rpc/client/channel.ts'
import { type Server, servePlain } from '../../../src/rpc/server/server.ts'
import { RpcError } from '../../../src/rpc/status.ts'
import { runs } from '../../support/runs.ts'

const service = 'sidero.discovery.server.Cluster'
let registry: Registry
let server: Server
let channel: Channel

beforeEach(async () => {
  registry = new Registry()
  const options = { methods: discoveryMethods(registry), store: new Store(), log: silent, roles: () => new Set<never>() }
  server = await servePlain({ host: '127.0.0.1', port: 0 }, options)
  channel = connect({ address: `127.0.0.1:${server.port}` })
})
afterEach(async () => {
  channel.close()
  await server.close()
})

const say = (affiliateId: string, data: string, seconds = 60) =>
  channel.unary(`${service}/AffiliateUpdate`, { clusterId: 'c', affiliateId, affiliateData: Buffer.from(data), ttl: { seconds, nanos: 0 } })

test('a client that sends Hello receives its address', async () => {
  const { clientIp } = await channel.unary(`${service}/Hello`, { clusterId: 'c', clientVersion: 'v1' })
  expect([...clientIp]).toEqual([127, 0, 0, 1])
})

test('what members say is listed, and taken back', async () => {
  await say('n1', 'one')
  await say('n2', 'two')
  const { affiliates } = await channel.unary(`${service}/List`, { clusterId: 'c' })
  expect(affiliates.map(({ id, data }) => [id, data.toString()])).toEqual([
    ['n1', 'one'],
    ['n2', 'two'],
  ])
  await channel.unary(`${service}/AffiliateDelete`, { clusterId: 'c', affiliateId: 'n1' })
  expect((await channel.unary(`${service}/List`, { clusterId: 'c' })).affiliates.map(({ id }) => id)).toEqual(['n2'])
})

test('a watcher sees all there is, then every change', async () => {
  await say('n1', 'one')
  const seen: [string[], boolean][] = []
  for await (const { affiliates, deleted } of channel.serverStream(`${service}/Watch`, { clusterId: 'c' })) {
    seen.push([affiliates.map(({ id }) => id), deleted])
    if (seen.length === 1) await say('n2', 'two')
    if (seen.length === 2) await channel.unary(`${service}/AffiliateDelete`, { clusterId: 'c', affiliateId: 'n1' })
    if (seen.length === 3) break
  }
  expect(seen).toEqual([
    [['n1'], false],
    [['n2'], false],
    [['n1'], true],
  ])
})

test('a cluster without members is watched as an empty one', async () => {
  for await (const { affiliates } of channel.serverStream(`${service}/Watch`, { clusterId: 'c' })) {
    expect(affiliates).toEqual([])
    break
  }
})

test('one address cannot watch clusters without members without end', async () => {
  const watches = Array.from({ length: limits.awaitedByOne }, (_, n) => channel.serverStream(`${service}/Watch`, { clusterId: `w${n}` }))
  const begun = watches.map((watch) => watch[Symbol.asyncIterator]())
  await Promise.all(begun.map((watch) => watch.next()))
  const one = channel.serverStream(`${service}/Watch`, { clusterId: 'one more' })[Symbol.asyncIterator]()
  await expect(one.next()).rejects.toMatchObject({ status: 'ResourceExhausted' })
  await say('n1', 'one')
  const known = channel.serverStream(`${service}/Watch`, { clusterId: 'c' })[Symbol.asyncIterator]()
  expect((await known.next()).value?.affiliates).toHaveLength(1)
  await Promise.all([...begun, known].map((watch) => watch.return?.()))
})

test('bad requests are refused by name', async () => {
  await expect(say('', 'x')).rejects.toMatchObject({ status: 'InvalidArgument', message: 'affiliate id must have 1 to 256 characters' })
  await expect(say('n1', 'x', 0)).rejects.toMatchObject({ status: 'InvalidArgument', message: 'ttl must lie between 0 and 1800 seconds' })
  await expect(say('n1', 'x'.repeat(4000))).rejects.toMatchObject({ status: 'InvalidArgument' })
  await expect(channel.unary(`${service}/Hello`, { clusterId: '', clientVersion: '' })).rejects.toMatchObject({ status: 'InvalidArgument' })
})

test('any request is accepted within bounds or rejected by name, and the service survives', async () => {
  const requests = fc.record({
    clusterId: fc.string({ maxLength: 300 }),
    affiliateId: fc.string({ maxLength: 300 }),
    affiliateData: fc.option(fc.uint8Array({ maxLength: 3000 }), { nil: undefined }),
    affiliateEndpoints: fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 80 }),
    ttl: fc.option(fc.record({ seconds: fc.integer({ min: -5, max: 4000 }), nanos: fc.integer() }), { nil: undefined }),
  })
  await fc.assert(
    fc.asyncProperty(requests, async (request) => {
      try {
        await channel.unary(`${service}/AffiliateUpdate`, request)
        const stored = registry.list(request.clusterId).find(({ id }) => id === request.affiliateId)!
        expect(stored.data.length).toBeLessThanOrEqual(limits.data)
        expect(stored.endpoints.length).toBeLessThanOrEqual(limits.endpoints)
      } catch (error) {
        if (!(error instanceof RpcError)) throw error
        expect(['InvalidArgument', 'ResourceExhausted']).toContain(error.status)
      }
    }),
    { numRuns: runs(60) },
  )
  await say('n1', 'one')
})

test('a service that has moved redirects, and serves no data', async () => {
  const methods = discoveryMethods(registry, { redirect: 'discovery.example:443' })
  const moved = await servePlain(
    { host: '127.0.0.1', port: 0 },
    { methods, store: new Store(), log: silent, roles: () => new Set<never>() },
  )
  const other = connect({ address: `127.0.0.1:${moved.port}` })
  const { redirect } = await other.unary(`${service}/Hello`, { clusterId: 'c', clientVersion: 'v1' })
  expect(redirect?.endpoint).toBe('discovery.example:443')
  await expect(other.unary(`${service}/List`, { clusterId: 'c' })).rejects.toMatchObject({ status: 'FailedPrecondition' })
  other.close()
  await moved.close()
})
