import { expect, test } from 'bun:test'
import { makeClock } from '../../../src/cosi/clock.ts'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { MachineType } from '../../../src/os/config/resources/machine-type.ts'
import { Endpoint } from '../../../src/os/k8s/resources/endpoint.ts'
import { NetworkStatus } from '../../../src/os/network/resources/network-status.ts'
import { MaintenanceServiceRequest } from '../../../src/os/runtime/resources/maintenance-service.ts'
import { issueApiCertificates } from '../../../src/os/secrets/controllers/api.ts'
import { configMaintenanceRoot } from '../../../src/os/secrets/controllers/roots.ts'
import { ApiCertificate } from '../../../src/os/secrets/resources/api-certificate.ts'
import { CertSAN } from '../../../src/os/secrets/resources/cert-san.ts'
import { OSRootSecret } from '../../../src/os/secrets/resources/os-root-secret.ts'
import { TimeStatus } from '../../../src/os/time/resources/time-status.ts'
import { day, newCA, type PemPair, parseCertificate, signedBy, toBase64 } from '../../../src/pki/certificate.ts'
import { signCSR } from '../../../src/pki/request.ts'

const ca = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
const sans = { ips: ['10.0.0.5', '127.0.0.1'], dnsNames: ['node-1'], fqdn: 'node-1' }

function node(type: 'controlplane' | 'worker') {
  let now = Date.now()
  const store = new Store()
  const os = new Runtime(store, { log: silent, clock: makeClock({ now: () => new Date(now) }) })
  const requested: string[][] = []
  /** The authority that trustd signs with; without one it does not answer. */
  const trustd: { ca?: PemPair | undefined } = { ca }
  os.register(
    configMaintenanceRoot,
    issueApiCertificates(async (endpoints, _ca, _token, csr) => {
      requested.push([...endpoints])
      if (!trustd.ca) throw new Error('connection refused')
      return signCSR(csr, { ca: trustd.ca, usage: ['serverAuth'], lifetime: day, subject: ({ commonName }) => ({ commonName }) })
    }),
  )
  os.start()
  const configure = () => {
    const key = type === 'controlplane' ? { issuingCA: { crt: toBase64(ca.crt), key: toBase64(ca.key) } } : {}
    store.put(OSRootSecret, 'os', { ...key, acceptedCAs: [{ crt: toBase64(ca.crt) }], certSANIPs: [], certSANDNSNames: [], token: 't' })
    store.put(MachineType, 'machine-type', type)
    store.put(CertSAN, 'api', sans)
    store.put(TimeStatus, 'node', { synced: true, epoch: 0, syncDisabled: true })
    store.put(NetworkStatus, 'status', { addressReady: true, connectivityReady: true, hostnameReady: true, etcFilesReady: true })
  }
  const accept = async (...authorities: PemPair[]) => {
    const acceptedCAs = authorities.map(({ crt }) => ({ crt: toBase64(crt) }))
    store.put(OSRootSecret, 'os', { acceptedCAs, certSANIPs: [], certSANDNSNames: [], token: 't' })
    await os.settled()
  }
  const shown = () => {
    const spec = store.get(ApiCertificate, 'api')?.spec
    const pem = (value?: { crt: string }) => (value ? parseCertificate(Buffer.from(value.crt, 'base64').toString()) : undefined)
    return { server: pem(spec?.server), client: pem(spec?.client), unverified: spec?.skipVerifyingClientCert }
  }
  return { store, os, requested, trustd, configure, accept, shown, later: (ms: number) => (now += ms) }
}

test('a control plane signs its own certificates: a server with its names, a client that may act for others', async () => {
  const { os, configure, shown } = node('controlplane')
  configure()
  await os.settled()
  const { server, client, unverified } = shown()
  expect(server?.extensions.altNames).toMatchObject({ ips: expect.arrayContaining(['10.0.0.5']), dns: ['node-1'] })
  expect(server?.extensions.extendedKeyUsage).toEqual(['serverAuth'])
  expect(client?.subject.organizations).toEqual(['os:impersonator'])
  expect(client?.extensions.extendedKeyUsage).toEqual(['clientAuth'])
  expect(unverified).toBe(false)
  os.stop()
})

test('a worker has its certificate signed by a control plane and no client certificate', async () => {
  const { store, os, requested, configure, shown } = node('worker')
  configure()
  await os.settled()
  expect(shown().server).toBeUndefined()
  store.put(Endpoint, 'discovery', { addresses: ['10.0.0.2'], hosts: [] })
  await os.settled()
  expect(requested).toEqual([['10.0.0.2']])
  expect(shown().server?.subject.commonName).toBe('node-1')
  expect(shown().client).toBeUndefined()
  os.stop()
})

test('a worker follows a rotation of the authority: at every step its certificate is of an accepted one', async () => {
  const next = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
  const { store, os, trustd, configure, accept } = node('worker')
  const spec = () => store.get(ApiCertificate, 'api')!.spec
  const crt = () => Buffer.from(spec().server!.crt, 'base64').toString()
  configure()
  store.put(Endpoint, 'discovery', { addresses: ['10.0.0.2'], hosts: [] })
  await os.settled()
  await accept(ca, next)
  expect(signedBy(crt(), ca.crt)).toBe(true)
  // trustd of the control plane is down: the accepted authorities follow anyway.
  trustd.ca = undefined
  await accept(next, ca)
  expect(spec().acceptedCAs).toEqual([{ crt: toBase64(next.crt) }, { crt: toBase64(ca.crt) }])
  expect(signedBy(crt(), ca.crt)).toBe(true)
  trustd.ca = next
  await accept(next)
  expect(signedBy(crt(), next.crt)).toBe(true)
  expect(spec().acceptedCAs).toEqual([{ crt: toBase64(next.crt) }])
  os.stop()
})

test('a worker takes no certificate of an authority that it does not accept', async () => {
  const { store, os, requested, trustd, configure } = node('worker')
  trustd.ca = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
  configure()
  store.put(Endpoint, 'discovery', { addresses: ['10.0.0.2'], hosts: [] })
  await os.settled()
  expect(requested.length).toBeGreaterThan(0)
  expect(store.get(ApiCertificate, 'api')).toBeUndefined()
  os.stop()
})

test('a certificate is kept until half of its lifetime is over, then replaced', async () => {
  const { store, os, configure, later } = node('controlplane')
  configure()
  await os.settled()
  const crt = () => store.get(ApiCertificate, 'api')?.spec.server?.crt
  const first = crt()
  const touch = (epoch: number) => store.put(TimeStatus, 'node', { synced: true, epoch, syncDisabled: true })
  touch(1)
  await os.settled()
  expect(crt()).toBe(first)
  later(day / 2 + 60_000)
  touch(2)
  await os.settled()
  expect(crt()).not.toBe(first)
  os.stop()
})

test('without a configuration the certificate is of a throw-away authority, and clients are not verified', async () => {
  const { store, os, shown } = node('worker')
  store.put(CertSAN, 'maintenance', { ...sans, fqdn: 'maintenance-service.talos.dev' })
  store.put(MaintenanceServiceRequest, 'maintenance', {})
  await os.settled()
  expect(shown()).toMatchObject({ unverified: true, client: undefined })
  expect(shown().server?.subject.commonName).toBe('maintenance-service.talos.dev')
  os.stop()
})
