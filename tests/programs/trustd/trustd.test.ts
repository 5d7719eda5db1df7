import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { Member } from '../../../src/os/cluster/resources/member.ts'
import { OSRootSecret } from '../../../src/os/secrets/resources/os-root-secret.ts'
import { SiblingKeys } from '../../../src/os/secrets/resources/sibling-keys.ts'
import { TrustdCertificate } from '../../../src/os/secrets/resources/trustd-certificate.ts'
import { day, issuedBy, newCA, newCertificate, parseCertificate, toBase64 } from '../../../src/pki/certificate.ts'
import { newCSR } from '../../../src/pki/request.ts'
import { run } from '../../../src/programs/trustd/trustd.ts'
import { type Channel, connect } from '../../../src/rpc/client/channel.ts'
import { fingerprintOf } from '../../../src/rpc/client/dial.ts'
import { trustdAccess } from '../../../src/rpc/server/resource-access.ts'
import { type Server, serveUnix } from '../../../src/rpc/server/server.ts'
import { stateMethods } from '../../../src/rpc/server/state.ts'
import { RpcError } from '../../../src/rpc/status.ts'
import { flag } from '../../../src/wire/http2/frame.ts'
import { RawClient } from '../../rpc/http2/raw-client.ts'
import { freePort } from '../../support/free-port.ts'
import { failure } from '../apid/nodes.ts'

const ca = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
const folder = mkdtempSync(join(tmpdir(), 'ichor-trustd-'))
const stop = new AbortController()
const store = new Store()
let machined: Server
let running: Promise<void>
let port: number
let channel: Channel
let renewed = Promise.withResolvers<void>()

function serverPair() {
  const { crt, key } = newCertificate({
    ca,
    subject: { commonName: 'n' },
    sans: { ips: ['127.0.0.1'] },
    usage: ['serverAuth'],
    lifetime: day,
  })
  return { crt: toBase64(crt), key: toBase64(key) }
}

beforeAll(async () => {
  const { log, listening } = listener()
  store.register(TrustdCertificate, OSRootSecret, Member, SiblingKeys)
  store.put(TrustdCertificate, 'trustd', { acceptedCAs: [{ crt: toBase64(ca.crt) }], server: serverPair() })
  store.put(OSRootSecret, 'os', {
    issuingCA: { crt: toBase64(ca.crt), key: toBase64(ca.key) },
    acceptedCAs: [{ crt: toBase64(ca.crt) }],
    certSANIPs: [],
    certSANDNSNames: [],
    token: 'abcdef.0123456789abcdef',
  })
  const socket = join(folder, 'runtime.sock')
  machined = await serveUnix({ path: socket }, { methods: stateMethods(trustdAccess, 'anyone'), store, log })
  port = await freePort()
  running = run({ host: '127.0.0.1', port }, socket, log, stop.signal)
  await listening
  channel = connect({ address: `127.0.0.1:${port}`, tls: { ca: ca.crt } })
})
afterAll(async () => {
  channel.close()
  stop.abort()
  await running
  await machined.close()
  rmSync(folder, { recursive: true })
})

function listener() {
  const { promise: listening, resolve } = Promise.withResolvers<void>()
  const log = createLogger(({ message }) => {
    if (message === 'trustd serves') resolve()
    if (message === 'certificate renewed') renewed.resolve()
  })
  return { log, listening }
}

const ask = (csr: string, token?: string | string[]) =>
  channel.unary('securityapi.SecurityService/Certificate', { csr: Buffer.from(csr) }, { metadata: token ? { token } : {}, deadline: 5_000 })

const request = () =>
  newCSR({ subject: { commonName: 'worker-1', organizations: ['os:admin'] }, sans: { ips: ['10.0.0.3'], dns: ['worker-1'] } }).csr

test('a request with the token gets a certificate for a server, without roles, for a day', async () => {
  const reply = await ask(request(), 'abcdef.0123456789abcdef')
  const certificate = parseCertificate(Buffer.from(reply.crt).toString())
  expect(Buffer.from(reply.ca).toString()).toBe(ca.crt)
  expect(issuedBy(certificate, parseCertificate(ca.crt))).toBe(true)
  expect(certificate.subject).toEqual({ commonName: 'worker-1' })
  expect(certificate.extensions.extendedKeyUsage).toEqual(['serverAuth'])
  expect(certificate.extensions.isCA).toBeFalsy()
  expect(certificate.extensions.altNames).toMatchObject({ ips: ['10.0.0.3'], dns: ['worker-1'] })
  expect(certificate.notAfter.getTime() - certificate.notBefore.getTime()).toBeLessThanOrEqual(day + 60_000)
})

test('without the token, with another or with two, there is none', async () => {
  for (const token of [undefined, 'abcdef.0123456789abcdee', '', ['abcdef.0123456789abcdef', 'x']])
    expect(await failure(ask(request(), token))).toEqual(['Unauthenticated', 'invalid token'])
})

test('what is not a request, or not signed by its own key, is refused', async () => {
  for (const csr of [
    '',
    'nonsense',
    request().replace(/\n([A-Za-z0-9+/])/, (_, letter) => `\n${letter === 'A' ? 'B' : 'A'}`),
    'x'.repeat(60_000),
  ])
    expect((await failure(ask(csr, 'abcdef.0123456789abcdef')))[0]).toBe('InvalidArgument')
  expect((await failure(ask('x'.repeat(70_000), 'abcdef.0123456789abcdef')))[0]).toBe('ResourceExhausted')
})

test('a renewed certificate is shown to those who connect from then on', async () => {
  const next = serverPair()
  renewed = Promise.withResolvers<void>()
  store.put(TrustdCertificate, 'trustd', { acceptedCAs: [], server: next })
  await ask(request(), 'abcdef.0123456789abcdef')
  await renewed.promise
  const fingerprint = fingerprintOf(Buffer.from(next.crt, 'base64'))
  const fresh = connect({ address: `127.0.0.1:${port}`, tls: { ca: ca.crt, fingerprint } })
  expect((await failure(fresh.unary('securityapi.SecurityService/Certificate', {}, {})))[0]).toBe('Unauthenticated')
  fresh.close()
})

test('keys of disks are sealed for callers with the token, by the first key, and unsealed by every key that is known', async () => {
  const token = 'abcdef.0123456789abcdef'
  const call = (verb: 'Seal' | 'Unseal', data: Uint8Array, nodeUuid = 'EPHEMERAL', metadata: { token?: string } = { token }) =>
    channel.unary(`sidero.kms.KMSService/${verb}`, { nodeUuid, data }, { metadata, deadline: 5_000 })
  const secret = new Uint8Array(32).fill(7)
  const keys = [1, 2].map((fill) => Buffer.alloc(32, fill).toString('base64'))
  /** trustd hears of keys a moment after the store has them. */
  const heard = async (verb: 'Seal' | 'Unseal', data: Uint8Array, refused: string) => {
    for (;;) {
      const answer = await call(verb, data).catch((error: RpcError) => error)
      if (!(answer instanceof RpcError)) return new Uint8Array(answer.data)
      expect(answer.status).toBe(refused as never)
    }
  }
  expect(await failure(call('Seal', secret))).toEqual(['FailedPrecondition', expect.stringContaining('no SiblingKeysConfig')])
  store.put(SiblingKeys, 'siblings', { keys: keys.slice(0, 1) })
  const sealed = await heard('Seal', secret, 'FailedPrecondition')
  expect(sealed).toHaveLength(60)
  expect(new Uint8Array((await call('Unseal', sealed)).data)).toEqual(secret)
  expect((await failure(call('Unseal', sealed, 'u-data')))[0]).toBe('PermissionDenied')
  for (const metadata of [{}, { token: 'x' }])
    expect((await failure(call('Unseal', sealed, 'EPHEMERAL', metadata)))[0]).toBe('Unauthenticated')
  expect((await failure(call('Seal', new Uint8Array(33))))[0]).toBe('InvalidArgument')
  // The next key seals, the one before still unseals; without it what it sealed is locked.
  store.put(SiblingKeys, 'siblings', { keys: keys.slice(1) })
  while (!Array.isArray(await failure(call('Unseal', sealed)))) await call('Seal', secret)
  expect((await failure(call('Unseal', sealed)))[0]).toBe('PermissionDenied')
  store.put(SiblingKeys, 'siblings', { keys: keys.toReversed() })
  expect(await heard('Unseal', sealed, 'PermissionDenied')).toEqual(secret)
})

describe('names of other members', () => {
  const token = 'abcdef.0123456789abcdef'
  const member = (hostname: string, machineType: 'controlplane' | 'worker', ...addresses: string[]) =>
    store.put(Member, hostname, { nodeId: hostname, hostname, machineType, addresses, operatingSystem: '' })
  const of = (commonName: string, dns: string[], ips: string[]) => newCSR({ subject: { commonName }, sans: { dns, ips } }).csr
  const altNames = async (csr: string) => parseCertificate(Buffer.from((await ask(csr, token)).crt).toString()).extensions.altNames
  /** trustd hears of members a moment after the store has them. */
  const heard = async (csr: string) => {
    for (;;) {
      const refusal = await failure(ask(csr, token))
      if (Array.isArray(refusal) && refusal[0] === 'PermissionDenied') return refusal[1]
    }
  }

  beforeAll(() => {
    member('controlplane-1', 'controlplane', '10.5.0.2')
    member('worker-7', 'worker', '10.5.0.7')
    member('worker-8', 'worker', '10.5.0.8', 'fd00::8')
  })

  test('are denied to every holder of the token', async () => {
    expect(await heard(of('worker-9', ['controlplane-1'], ['10.5.0.2', '127.0.0.1']))).toBe(
      'the request is for names of other members of the cluster: controlplane-1, 10.5.0.2',
    )
    expect((await failure(ask(of('controlplane-1', [], ['10.5.0.9']), token)))[0]).toBe('PermissionDenied')
    expect((await failure(ask(of('ControlPlane-1.', [], ['10.5.0.2']), token)))[0]).toBe('PermissionDenied')
  })

  test('are left out where a machine requests its own as well', async () => {
    expect(
      await altNames(of('worker-9', ['worker-9', 'controlplane-1', 'api.example.org'], ['10.5.0.9', '10.5.0.2', '::ffff:10.5.0.7'])),
    ).toEqual({
      dns: ['worker-9', 'api.example.org'],
      ips: ['10.5.0.9'],
    })
  })

  test('are no hindrance to a machine that renews from behind a translation, by its own name', async () => {
    expect(await altNames(of('worker-8', ['worker-8'], ['10.5.0.8', 'fd00::8', '192.0.2.1']))).toEqual({
      dns: ['worker-8'],
      ips: ['10.5.0.8', 'fd00::8', '192.0.2.1'],
    })
  })

  test('and those by which the control planes are reached are no worker’s', async () => {
    const root = store.get(OSRootSecret, 'os')!.spec
    store.put(OSRootSecret, 'os', { ...root, certSANIPs: ['10.5.0.100', '10.5.0.9'], certSANDNSNames: ['Api.Cluster.example', 'worker-9'] })
    expect(await heard(of('worker-9', [], ['10.5.0.100']))).toContain('10.5.0.100')
    const wanted = of('worker-9', ['worker-9', 'api.cluster.example', '*.cluster.example', 'api'], ['10.5.0.19', '10.5.0.100'])
    // A list of all nodes' names may be everywhere: a machine that is not a member yet gets a certificate anyway.
    expect(await altNames(wanted)).toEqual({ dns: ['api'], ips: ['10.5.0.19'] })
    member('worker-9', 'worker', '10.5.0.9')
    const both = of('worker-9', ['worker-9', 'api.cluster.example'], ['10.5.0.9'])
    const refused = { dns: [], ips: [] }
    while (!Bun.deepEquals(await altNames(both).catch(() => refused), { dns: ['worker-9'], ips: ['10.5.0.9'] }));
    store.destroy(Member, 'worker-9')
    store.put(OSRootSecret, 'os', root)
  })

  test('are recognized by the source address, when it is a member’s', async () => {
    member('worker-here', 'worker', '127.0.0.1', '10.5.0.20')
    await heard(of('worker-8', ['worker-8'], ['10.5.0.8']))
    expect(await altNames(of('worker-here', ['worker-here'], ['10.5.0.20', '10.5.0.21']))).toEqual({
      dns: ['worker-here'],
      ips: ['10.5.0.20', '10.5.0.21'],
    })
  })
})

describe('somebody without the token', () => {
  const clients: RawClient[] = []
  afterAll(() => {
    for (const client of clients) client.close()
  })
  const path = '/securityapi.SecurityService/Certificate'
  const headers = { ':path': path, 'content-type': 'application/grpc', te: 'trailers' }
  const raw = async () => {
    const client = await RawClient.connect({ hostname: '127.0.0.1', port, tls: {} })
    clients.push(client)
    return client
  }

  test('is refused by the headers, whatever is to follow', async () => {
    const client = await raw()
    for (const [at, token] of ['', 'abcdef.0123456789abcdee'].entries()) client.request(1 + 2 * at, { ...headers, token }, flag.END_HEADERS)
    await client.until(() => client.headers.has(3))
    for (const stream of [1, 3]) expect(client.headers.get(stream)).toMatchObject({ 'grpc-status': '16', 'grpc-message': 'invalid token' })
  })

  test('shuts nobody out by connections whose requests never end', async () => {
    const token = 'abcdef.0123456789abcdef'
    for (let n = 0; n < 200; n++) (await raw()).request(1, { ...headers, token }, flag.END_HEADERS)
    for (let n = 0; n < 3; n++) {
      const fresh = connect({ address: `127.0.0.1:${port}`, tls: { ca: ca.crt } })
      const reply = await fresh.unary(
        'securityapi.SecurityService/Certificate',
        { csr: Buffer.from(request()) },
        { metadata: { token }, deadline: 5_000 },
      )
      expect(reply.crt.length).toBeGreaterThan(0)
      fresh.close()
    }
    expect(clients.some(({ closed }) => closed)).toBe(true)
  })
})
