import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { OSRootSecret } from '../../../src/os/secrets/resources/os-root-secret.ts'
import { TrustdCertificate } from '../../../src/os/secrets/resources/trustd-certificate.ts'
import { day, issuedBy, newCA, newCertificate, parseCertificate, toBase64 } from '../../../src/pki/certificate.ts'
import { newCSR } from '../../../src/pki/request.ts'
import { run } from '../../../src/programs/trustd/trustd.ts'
import { type Channel, connect } from '../../../src/rpc/client/channel.ts'
import { trustdAccess } from '../../../src/rpc/server/resource-access.ts'
import { type Server, serveUnix } from '../../../src/rpc/server/server.ts'
import { stateMethods } from '../../../src/rpc/server/state.ts'
import { failure, freePort } from '../apid/nodes.ts'

const ca = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
const folder = mkdtempSync(join(tmpdir(), 'ichor-trustd-'))
const stop = new AbortController()
const store = new Store()
let machined: Server
let running: Promise<void>
let port: number
let channel: Channel

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
  store.register(TrustdCertificate, OSRootSecret)
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
  const log = createLogger(({ message }) => message === 'trustd serves' && resolve())
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
    'x'.repeat(70_000),
  ])
    expect((await failure(ask(csr, 'abcdef.0123456789abcdef')))[0]).toBe('InvalidArgument')
})

test('a renewed certificate is shown to those who connect from then on', async () => {
  const next = serverPair()
  store.put(TrustdCertificate, 'trustd', { acceptedCAs: [], server: next })
  await ask(request(), 'abcdef.0123456789abcdef')
  const fresh = connect({ address: `127.0.0.1:${port}`, tls: { ca: ca.crt } })
  expect((await failure(fresh.unary('securityapi.SecurityService/Certificate', {}, {})))[0]).toBe('Unauthenticated')
  fresh.close()
})
