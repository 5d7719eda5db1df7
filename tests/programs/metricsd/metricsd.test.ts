import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { ApiCertificate } from '../../../src/os/secrets/resources/api-certificate.ts'
import { newCA, newCertificate, toBase64 } from '../../../src/pki/certificate.ts'
import { tlsKey } from '../../../src/pki/key.ts'
import { endpointIn } from '../../../src/programs/metricsd/endpoint.ts'
import { run } from '../../../src/programs/metricsd/metricsd.ts'
import { unary } from '../../../src/rpc/server/method.ts'
import { metricsdAccess } from '../../../src/rpc/server/resource-access.ts'
import { type Server, serveUnix } from '../../../src/rpc/server/server.ts'
import { stateMethods } from '../../../src/rpc/server/state.ts'
import { freePort } from '../../support/free-port.ts'

const lifetime = 3600_000
const os = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
const clients = newCA({ subject: { organizations: ['monitoring'] }, kind: 'ecdsa' })
const strangers = newCA({ subject: { organizations: ['strangers'] }, kind: 'ecdsa' })
const token = '0123456789abcdef'
const folder = mkdtempSync(join(tmpdir(), 'ichor-metricsd-'))
const stop = new AbortController()
const store = new Store()
let machined: Server
let running: Promise<void>
let port: number
let served = Promise.withResolvers<void>()

const serverPair = (commonName: string) =>
  newCertificate({ ca: os, subject: { commonName }, sans: { ips: ['127.0.0.1'] }, usage: ['serverAuth'], lifetime })
const clientPair = (ca: typeof os, more: { now?: Date } = {}) => {
  const { crt, key } = newCertificate({ ca, subject: { commonName: 'prometheus' }, usage: ['clientAuth'], lifetime, ...more })
  return { cert: crt, key: tlsKey(key) }
}
function show(commonName: string): void {
  const { crt, key } = serverPair(commonName)
  store.put(ApiCertificate, 'api', { server: { crt: toBase64(crt), key: toBase64(key) }, skipVerifyingClientCert: false })
}

beforeAll(async () => {
  store.register(ApiCertificate)
  show('first')
  const log = createLogger(({ message }) => message === 'metrics are served' && served.resolve())
  const socket = join(folder, 'runtime.sock')
  const metrics = unary('ichor.v1.MetricsService/Metrics', 'anyone', ({ format }) => ({ messages: [{ text: `format ${format}\n` }] }))
  machined = await serveUnix({ path: socket }, { methods: [...stateMethods(metricsdAccess, 'anyone'), metrics], store, log })
  port = await freePort()
  const tokenDigest = createHash('sha256').update(token).digest('hex')
  writeFileSync(join(folder, 'endpoint.json'), JSON.stringify({ listen: `127.0.0.1:${port}`, clientCA: clients.crt, tokenDigest }))
  running = run(endpointIn(join(folder, 'endpoint.json')), socket, log, stop.signal)
  await served.promise
})
afterAll(async () => {
  stop.abort()
  await running
  await machined.close()
  rmSync(folder, { recursive: true })
})

const get = (tls: object, headers: Record<string, string> = {}, path = '/metrics') =>
  fetch(`https://127.0.0.1:${port}${path}`, { tls: { ca: os.crt, ...tls }, headers, keepalive: false })

test('a client certificate of the declared authority is admitted, and gets gzip', async () => {
  const response = await get(clientPair(clients), { 'accept-encoding': 'gzip' })
  expect([response.status, response.headers.get('content-encoding'), await response.text()]).toEqual([200, 'gzip', 'format 0\n'])
})

test('the token is admitted, in OpenMetrics', async () => {
  const response = await get({}, { authorization: `Bearer ${token}`, accept: 'application/openmetrics-text; version=1.0.0' })
  expect([response.status, await response.text()]).toEqual([200, 'format 1\n'])
  expect(response.headers.get('content-type')).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
})

test.each([
  ['nothing', () => ({})],
  ['a certificate of another authority', () => clientPair(strangers)],
  ['a certificate of the machine API', () => clientPair(os)],
  ['a certificate that has expired', () => clientPair(clients, { now: new Date(Date.now() - 2 * lifetime) })],
  ['a certificate of a server', () => ({ cert: serverPair('x').crt, key: tlsKey(serverPair('x').key) })],
])('with %s nobody is admitted', async (_, tls) => {
  const outcome = await get(tls()).then(
    ({ status }) => status,
    () => 'no connection',
  )
  expect([401, 'no connection']).toContain(outcome)
})

test('the certificate is renewed without a pause', async () => {
  served = Promise.withResolvers()
  show('second')
  await served.promise
  const seen = Promise.withResolvers<string>()
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    tls: { ca: os.crt },
    socket: {
      data() {},
      handshake(connection: Bun.Socket & { getPeerCertificate(): { subject: { CN?: unknown } } }) {
        seen.resolve(String(connection.getPeerCertificate().subject.CN))
        connection.end()
      },
    },
  } as never)
  expect(await seen.promise).toBe('second')
  ;(socket as { end(): void }).end()
  expect((await get(clientPair(clients))).status).toBe(200)
})

test('without a declaration it ends with one line', async () => {
  const main = join(import.meta.dir, '../../../src/main.ts')
  const child = Bun.spawn([process.execPath, main, 'metricsd', '--endpoint', join(folder, 'none')], { stderr: 'pipe' })
  const [code, text] = await Promise.all([child.exited, new Response(child.stderr).text()])
  expect(code).toBe(78)
  expect(text.trimEnd().split('\n')).toHaveLength(1)
  expect(text).toContain('the declaration of the endpoint cannot be read')
}, 60_000)

test('connections that prove nothing give way to others', async () => {
  const silent = await Promise.all(
    Array.from({ length: 80 }, () => Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {}, close() {}, error() {} } })),
  )
  expect((await get(clientPair(clients))).status).toBe(200)
  for (const socket of silent) socket.end()
})
