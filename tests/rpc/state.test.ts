import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../src/cosi/log.ts'
import { Store } from '../../src/cosi/store.ts'
import { MachineConfig } from '../../src/os/config/resources/machine-config.ts'
import { Manifest } from '../../src/os/k8s/resources/manifest.ts'
import { HostnameStatus } from '../../src/os/network/resources/hostname.ts'
import { NodeAddress } from '../../src/os/network/resources/node-address.ts'
import { ApiCertificate } from '../../src/os/secrets/resources/api-certificate.ts'
import { OSRootSecret } from '../../src/os/secrets/resources/os-root-secret.ts'
import { TrustdCertificate } from '../../src/os/secrets/resources/trustd-certificate.ts'
import { type Channel, connect } from '../../src/rpc/client/channel.ts'
import { cosi as enums } from '../../src/rpc/enums.ts'
import type { cosi } from '../../src/rpc/messages.ts'
import { fromMessage } from '../../src/rpc/resource-of-message.ts'
import { apidAccess, roleAccess, trustdAccess } from '../../src/rpc/server/resource-access.ts'
import { type Server, serveUnix } from '../../src/rpc/server/server.ts'
import { stateMethods } from '../../src/rpc/server/state.ts'
import { failure } from '../programs/apid/nodes.ts'

const { EventType, LabelTerm } = enums.resource
const folder = mkdtempSync(join(tmpdir(), 'ichor-state-'))
const store = new Store()
const servers: Server[] = []
const channels: Channel[] = []

async function open(name: string, methods: ReturnType<typeof stateMethods>, role?: string): Promise<Channel> {
  const path = join(folder, name)
  servers.push(await serveUnix({ path }, { methods, store, log: silent }))
  channels.push(connect({ unix: path }, role ? { metadata: { 'talos-role': role } } : {}))
  return channels.at(-1)!
}

let reader: Channel
let admin: Channel
let apid: Channel
let trustd: Channel

beforeAll(async () => {
  store.register(MachineConfig, Manifest, HostnameStatus, NodeAddress, ApiCertificate, TrustdCertificate, OSRootSecret)
  store.put(HostnameStatus, 'hostname', { hostname: 'a', domainname: 'b' }, { labels: { color: 'red' }, owner: '' })
  store.put(HostnameStatus, 'other', { hostname: 'c', domainname: '' })
  store.put(MachineConfig, 'v1alpha1', 'version: v1alpha1\n')
  store.put(NodeAddress, 'current', { addresses: ['10.0.0.1/24'], sortAlgorithm: 'v1' })
  store.put(ApiCertificate, 'api', { skipVerifyingClientCert: false })
  store.put(ApiCertificate, 'another', { skipVerifyingClientCert: false })
  store.put(TrustdCertificate, 'trustd', {})
  reader = await open('reader', stateMethods(roleAccess), 'os:reader')
  admin = await open('admin', stateMethods(roleAccess), 'os:admin')
  apid = await open('apid', stateMethods(apidAccess, 'anyone'))
  trustd = await open('trustd', stateMethods(trustdAccess, 'anyone'))
})
afterAll(async () => {
  for (const channel of channels) channel.close()
  for (const server of servers) await server.close()
  rmSync(folder, { recursive: true })
})

const hostnames = { namespace: 'network', type: 'HostnameStatuses.net.talos.dev' }
const get = (channel: Channel, type: string, id: string, namespace = '') =>
  channel.unary('cosi.resource.State/Get', { namespace, type, id })
const list = (channel: Channel, request: object) => Array.fromAsync(channel.serverStream('cosi.resource.State/List', request))

test('a resource arrives with its metadata, its spec as a message and as YAML', async () => {
  const { resource } = await get(reader, 'HostnameStatuses.net.talos.dev', 'hostname', 'network')
  expect(resource?.metadata).toMatchObject({ ...hostnames, id: 'hostname', version: '1', phase: 'running', labels: { color: 'red' } })
  expect(resource?.spec?.yamlSpec).toBe('hostname: a\ndomainname: b\n')
  expect(fromMessage(resource!).spec).toEqual({ hostname: 'a', domainname: 'b' })
})

test('a missing resource is NotFound', async () => {
  expect((await failure(get(reader, 'HostnameStatuses.net.talos.dev', 'x')))[0]).toBe('NotFound')
})

test('a list contains all resources of a type, or those that a label or an id selects', async () => {
  const ids = async (options: object) => (await list(reader, { ...hostnames, options })).map(({ resource }) => resource?.metadata?.id)
  expect(await ids({})).toEqual(['hostname', 'other'])
  expect(await ids({ labelQuery: [{ terms: [{ key: 'color', op: LabelTerm.Operation.EQUAL, value: ['red'] }] }] })).toEqual(['hostname'])
  expect(await ids({ labelQuery: [{ terms: [{ key: 'color', op: LabelTerm.Operation.NOT_EXISTS }] }] })).toEqual(['other'])
  expect(await ids({ idQuery: { regexp: '^oth' } })).toEqual(['other'])
})

test('an expensive pattern is refused', async () => {
  const ask = (regexp: string) => failure(list(reader, { ...hostnames, options: { idQuery: { regexp } } }))
  expect(await ask('(?=a)')).toEqual([
    'InvalidArgument',
    'pattern for ids: error parsing regexp: invalid or unsupported Perl syntax: `(?=`',
  ])
  for (const regexp of ['x'.repeat(1100), '(', 'a{1001}']) expect((await ask(regexp))[0]).toBe('InvalidArgument')
  const ids = Array.from({ length: 20 }, (_, number) => `${number}${'a'.repeat(250)}`)
  for (const id of ids) store.put(HostnameStatus, id, { hostname: 'x', domainname: '' })
  const start = process.cpuUsage()
  for (const regexp of ['(a+)+$', '(.|.)*!', '((.+))+!', '.*.*.*.*.*.*.*!', '(\\w+|x)*!', '(a|aa)+!'])
    expect(await ask(regexp)).toBe('no failure')
  expect(await ask('(a?a?a?){300}(.|.)*!')).toEqual(tooLong)
  const { user, system } = process.cpuUsage(start)
  expect(user + system).toBeLessThan(1_000_000)
  for (const id of ids) store.destroy(HostnameStatus, id)
})

const tooLong: [string, string] = [
  'ResourceExhausted',
  'your queries take too long: use fewer repetitions in patterns for ids, or fewer watches',
]

describe('what all calls of a client compare', () => {
  /** As large as a pattern may be; none of its steps is ever left out. */
  const worst = '(.?.?){990}!'
  const put = (id: string, hostname = 'x') => store.put(HostnameStatus, id, { hostname, domainname: '' })

  /** Milliseconds of processor time. */
  async function spent(work: () => Promise<unknown>): Promise<number> {
    const start = process.cpuUsage()
    await work()
    const { user, system } = process.cpuUsage(start)
    return (user + system) / 1000
  }

  test('has one budget for many lists at once, and another client has its own', async () => {
    const ids = Array.from({ length: 20 }, (_, number) => `${number}${'a'.repeat(250)}`)
    for (const id of ids) put(id)
    const busy = await open('lists', stateMethods(roleAccess), 'os:reader')
    const ask = () => failure(list(busy, { ...hostnames, options: { idQuery: { regexp: worst } } }))
    const outcomes: unknown[] = []
    expect(await spent(async () => outcomes.push(...(await Promise.all(Array.from({ length: 64 }, ask)))))).toBeLessThan(1500)
    expect(outcomes).toEqual(Array.from({ length: 64 }, () => tooLong))
    expect(await failure(list(admin, { ...hostnames, options: { idQuery: { regexp: '^oth' } } }))).toBe('no failure')
    for (const id of ids) store.destroy(HostnameStatus, id)
  })

  test('has one budget for many watches, of which those beyond it are ended', async () => {
    const busy = await open('watches', stateMethods(roleAccess), 'os:reader')
    const watching = (options: object) => busy.serverStream('cosi.resource.State/Watch', { ...hostnames, apiVersion: 1, options })
    const simple = watching({})
    await simple.next()
    const watches = Array.from({ length: 40 }, () => watching({ idQuery: { regexp: worst } }))
    for (const each of watches) await each.next()
    const id = 'b'.repeat(250)
    const ended = watches.map((each) => failure(each.next()))
    expect(
      await spent(async () => {
        put(id)
        put(id, 'y')
        await Promise.any(ended)
        for (const type of [EventType.CREATED, EventType.UPDATED]) expect((await simple.next()).value?.event[0]?.eventType).toBe(type)
      }),
    ).toBeLessThan(1000)
    const outcomes = await Promise.all(ended.map((each) => Promise.race([each, Bun.sleep(100)])))
    expect(outcomes.filter((each) => each !== undefined).length).toBeGreaterThan(30)
    for (const each of outcomes) if (each !== undefined) expect(each).toEqual(tooLong)
    store.destroy(HostnameStatus, id)
    await simple.return()
  })

  test('is charged for the memory of its patterns for as long as its watches last', async () => {
    const busy = await open('programs', stateMethods(roleAccess), 'os:reader')
    const watching = () =>
      busy.serverStream('cosi.resource.State/Watch', { ...hostnames, apiVersion: 1, options: { idQuery: { regexp: worst } } })
    const watches = Array.from({ length: 60 }, watching)
    const established = await Promise.all(watches.map((each) => failure(each.next())))
    const ended = watches.map(async (each, at) => (established[at] === 'no failure' ? failure(each.next()) : established[at]))
    expect(await Promise.race(ended)).toEqual(['ResourceExhausted', expect.stringContaining('waits for more than')])
  })

  test('counts conditions on labels, of which one query has few', async () => {
    const ids = Array.from({ length: 1000 }, (_, number) => `label-${number}`)
    for (const id of ids) store.put(HostnameStatus, id, { hostname: 'x', domainname: '' }, { labels: { color: 'red' } })
    const busy = await open('labels', stateMethods(roleAccess), 'os:reader')
    const ask = (count: number, term: object) =>
      failure(list(busy, { ...hostnames, options: { labelQuery: [{ terms: Array.from({ length: count }, () => term) }] } }))
    expect(await ask(9990, {})).toEqual(['InvalidArgument', '9990 conditions on labels are too many for one query: at most 64'])
    expect((await ask(65, {}))[0]).toBe('InvalidArgument')
    const red = { key: 'color', op: LabelTerm.Operation.IN, value: [...Array(140).fill('blue'), 'red'] }
    expect(await ask(2, red)).toBe('no failure')
    expect(await ask(64, red)).toEqual(tooLong)
    for (const id of ids) store.destroy(HostnameStatus, id)
  })
})

describe('the secrets in manifests', () => {
  const token = { kind: 'Secret', metadata: { name: 'bootstrap-token-abcdef' }, data: { 'token-secret': 'c2VjcmV0' } }
  const hiddenFrom = (message: object | undefined) => JSON.stringify(message ?? null).includes('c2VjcmV0')
  const kinds = { namespace: 'controlplane', type: 'Manifests.kubernetes.talos.dev' }

  test.each(['os:reader', 'os:operator', 'os:admin'])('are shown to administrators only: %s', async (role) => {
    const channel = await open(`manifests-${role.slice(3)}`, stateMethods(roleAccess), role)
    const shown = role === 'os:admin'
    const seesIt = (message: object | undefined) => {
      const text = Buffer.from(JSON.stringify(message), 'utf8').toString()
      expect(text).toContain('bootstrap-token-abcdef')
      expect(hiddenFrom(message)).toBe(shown)
    }
    const spec = (resource: cosi.resource.Resource | undefined) => ({ ...resource?.spec, protoSpec: String(resource?.spec?.protoSpec) })
    store.put(Manifest, 'token', [token, { kind: 'List', items: [token] }])
    seesIt(spec((await get(channel, kinds.type, 'token')).resource))
    seesIt(spec((await list(channel, kinds))[0]?.resource))
    for (const request of [
      { id: 'token' },
      { options: { bootstrapContents: true } },
      { options: { bootstrapContents: true, aggregated: true } },
    ]) {
      const stream = channel.serverStream('cosi.resource.State/Watch', { ...kinds, apiVersion: 1, ...request })
      await stream.next()
      const next = async () => (await stream.next()).value as cosi.resource.WatchResponse
      seesIt(spec((await next()).event[0]?.resource))
      if (request.options && !request.options.aggregated) await next()
      store.put(Manifest, 'token', [token, { kind: 'ConfigMap', metadata: { name: crypto.randomUUID() } }])
      const [event] = (await next()).event
      seesIt(spec(event?.resource))
      seesIt(spec(event?.old))
      await stream.return()
    }
    expect(store.get(Manifest, 'token')?.spec[0]).toEqual(token)
  })
})

describe('a watch', () => {
  async function start(request: object, channel = reader) {
    const stream = channel.serverStream('cosi.resource.State/Watch', { ...hostnames, apiVersion: 1, ...request })
    expect((await stream.next()).value).toEqual({ event: [] })
    const next = async () => (await stream.next()).value as cosi.resource.WatchResponse
    return { next, end: () => stream.return() }
  }
  const seen = ({ event }: cosi.resource.WatchResponse) => event.map(({ eventType, resource }) => [eventType, resource?.metadata?.id])

  test('starts with the contents, marks their end, then reports changes', async () => {
    const watch = await start({ options: { bootstrapContents: true } })
    expect(seen(await watch.next())).toEqual([[EventType.CREATED, 'hostname']])
    expect(seen(await watch.next())).toEqual([[EventType.CREATED, 'other']])
    expect(seen(await watch.next())).toEqual([[EventType.BOOTSTRAPPED, '']])
    store.put(HostnameStatus, 'third', { hostname: 'd', domainname: '' })
    store.put(HostnameStatus, 'third', { hostname: 'e', domainname: '' })
    store.destroy(HostnameStatus, 'third')
    expect(seen(await watch.next())).toEqual([[EventType.CREATED, 'third']])
    const updated = await watch.next()
    expect(updated.event[0]?.old?.spec?.yamlSpec).toContain('hostname: d')
    expect(seen(await watch.next())).toEqual([[EventType.DESTROYED, 'third']])
    await watch.end()
  })

  test('that is aggregated sends the contents in one response', async () => {
    const watch = await start({ options: { bootstrapContents: true, aggregated: true } })
    expect(seen(await watch.next())).toEqual([
      [EventType.CREATED, 'hostname'],
      [EventType.CREATED, 'other'],
      [EventType.BOOTSTRAPPED, ''],
    ])
    await watch.end()
  })

  test('of one resource starts with its state, existing or not', async () => {
    const there = await start({ id: 'hostname' })
    expect(seen(await there.next())).toEqual([[EventType.CREATED, 'hostname']])
    await there.end()
    const absent = await start({ id: 'nowhere' })
    const { event } = await absent.next()
    expect(event[0]).toMatchObject({
      eventType: EventType.DESTROYED,
      resource: { metadata: { id: 'nowhere', version: 'undefined' }, spec: {} },
    })
    await absent.end()
  })

  test('continues from a bookmark, and refuses one of another run', async () => {
    const first = await start({})
    store.put(HostnameStatus, 'third', { hostname: 'd', domainname: '' })
    const { event } = await first.next()
    await first.end()
    store.destroy(HostnameStatus, 'third')
    const second = await start({ options: { startFromBookmark: event[0]?.bookmark } })
    expect(seen(await second.next())).toEqual([[EventType.DESTROYED, 'third']])
    await second.end()
    const stream = reader.serverStream('cosi.resource.State/Watch', { ...hostnames, options: { startFromBookmark: Buffer.alloc(16) } })
    expect((await failure(stream.next()))[0]).toBe('FailedPrecondition')
  })
})

describe('access', () => {
  const refused = async (call: Promise<unknown>) => (await failure(call))[0]

  test('to sensitive types is for administrators', async () => {
    expect(await refused(get(reader, 'MachineConfigs.config.talos.dev', 'v1alpha1'))).toBe('PermissionDenied')
    expect(await refused(list(reader, { type: 'MachineConfigs.config.talos.dev' }))).toBe('PermissionDenied')
    expect(fromMessage((await get(admin, 'MachineConfigs.config.talos.dev', 'v1alpha1')).resource!).spec).toBe('version: v1alpha1\n')
  })

  test('to unknown types is refused', async () => {
    expect(await refused(get(admin, 'Nonsenses.talos.dev', 'x'))).toBe('PermissionDenied')
  })

  test('for writing is refused to everyone', async () => {
    for (const channel of [admin, reader, apid, trustd]) {
      const resource = { metadata: { ...hostnames, id: 'new', version: '1', phase: 'running' }, spec: {} }
      expect(await refused(channel.unary('cosi.resource.State/Create', { resource }))).toBe('PermissionDenied')
      expect(await refused(channel.unary('cosi.resource.State/Update', { newResource: resource }))).toBe('PermissionDenied')
      expect(await refused(channel.unary('cosi.resource.State/Destroy', { ...hostnames, id: 'hostname' }))).toBe('PermissionDenied')
    }
    expect(store.get(HostnameStatus, 'hostname')).toBeDefined()
  })

  test('of apid is limited to its own certificates and the addresses', async () => {
    expect((await get(apid, 'ApiCertificates.secrets.talos.dev', 'api')).resource?.metadata?.id).toBe('api')
    expect(await list(apid, { type: 'NodeAddresses.net.talos.dev' })).toHaveLength(1)
    const others = store.types().filter(({ type }) => !['ApiCertificates.secrets.talos.dev', 'NodeAddresses.net.talos.dev'].includes(type))
    for (const { type } of others) expect(await refused(list(apid, { type }))).toBe('PermissionDenied')
    expect(await refused(get(apid, 'ApiCertificates.secrets.talos.dev', 'another'))).toBe('PermissionDenied')
    expect(await refused(list(apid, { type: 'ApiCertificates.secrets.talos.dev' }))).toBe('PermissionDenied')
    expect(await refused(list(apid, { type: 'NodeAddresses.net.talos.dev', namespace: 'elsewhere' }))).toBe('PermissionDenied')
  })

  test("of trustd ends at its own certificate and the authority's key", async () => {
    expect((await get(trustd, 'TrustdCertificates.secrets.talos.dev', 'trustd')).resource?.metadata?.id).toBe('trustd')
    expect(await refused(get(trustd, 'OSRootSecrets.secrets.talos.dev', 'os'))).toBe('NotFound')
    expect(await refused(get(trustd, 'SiblingKeys.secrets.ichor.dev', 'other'))).toBe('PermissionDenied')
    for (const type of ['ApiCertificates.secrets.talos.dev', 'NodeAddresses.net.talos.dev', 'MachineConfigs.config.talos.dev'])
      expect(await refused(list(trustd, { type }))).toBe('PermissionDenied')
  })
})
