import { afterEach, describe, expect, test } from 'bun:test'
import { makeClock } from '../../../src/cosi/clock.ts'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { configMachineType } from '../../../src/os/config/controllers/machine-type.ts'
import { generate } from '../../../src/os/config/generate/generate.ts'
import type { SecretsBundle } from '../../../src/os/config/generate/secrets.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { Endpoint } from '../../../src/os/k8s/resources/endpoint.ts'
import { HostnameStatus } from '../../../src/os/network/resources/hostname.ts'
import { NetworkStatus } from '../../../src/os/network/resources/network-status.ts'
import { NodeAddress } from '../../../src/os/network/resources/node-address.ts'
import { MaintenanceServiceRequest } from '../../../src/os/runtime/resources/maintenance-service.ts'
import { issueApiCertificates, issueTrustdCertificates } from '../../../src/os/secrets/controllers/api.ts'
import { issueEtcdCertificates } from '../../../src/os/secrets/controllers/etcd.ts'
import { issueApiServerCertificates, issueKubeconfigs } from '../../../src/os/secrets/controllers/kubernetes.ts'
import { configMaintenanceRoot, configRootEtcd, configRootKubernetes, configRootOS } from '../../../src/os/secrets/controllers/roots.ts'
import { configApiSans, configKubernetesSans, configMaintenanceSans } from '../../../src/os/secrets/controllers/sans.ts'
import { ApiCertificate } from '../../../src/os/secrets/resources/api-certificate.ts'
import { EtcdSecret } from '../../../src/os/secrets/resources/etcd-secret.ts'
import { KubernetesDynamicCert } from '../../../src/os/secrets/resources/kubernetes-dynamic-cert.ts'
import { KubernetesSecret } from '../../../src/os/secrets/resources/kubernetes-secret.ts'
import { TrustdCertificate } from '../../../src/os/secrets/resources/trustd-certificate.ts'
import { TimeStatus } from '../../../src/os/time/resources/time-status.ts'
import { day, fromBase64, issuedBy, newCA, parseCertificate, toBase64, year } from '../../../src/pki/certificate.ts'
import { newKey } from '../../../src/pki/key.ts'
import { parseCSR, signCSR } from '../../../src/pki/request.ts'

const pair = (organization: string | undefined, kind: 'ed25519' | 'ecdsa') => {
  const { crt, key } = newCA({ subject: organization ? { organizations: [organization] } : {}, kind })
  return { crt: toBase64(crt), key: toBase64(key) }
}
const certs = {
  etcd: pair('etcd', 'ecdsa'),
  k8s: pair('kubernetes', 'ecdsa'),
  k8saggregator: pair(undefined, 'ecdsa'),
  k8sserviceaccount: { key: toBase64(newKey('ecdsa').pem) },
  os: pair('talos', 'ed25519'),
}
const secrets: SecretsBundle = {
  cluster: { id: 'id', secret: 'secret' },
  secrets: { bootstraptoken: 'abcdef.0123456789abcdef' },
  trustdinfo: { token: 'token' },
  certs,
}

const running: Runtime[] = []
afterEach(() => {
  for (const runtime of running.splice(0)) runtime.stop()
})

interface SignatureRequest {
  hosts: readonly string[]
  token: string
}

function machine() {
  const store = new Store()
  const clock = { now: new Date('2026-11-21T12:00:00Z') }
  const requested: SignatureRequest[] = []
  const runtime = new Runtime(store, { log: silent, clock: makeClock({ now: () => clock.now }) })
  running.push(runtime)
  runtime.register(
    configMachineType,
    configRootOS,
    configRootEtcd,
    configRootKubernetes,
    configMaintenanceRoot,
    configApiSans,
    configKubernetesSans,
    configMaintenanceSans,
    issueApiCertificates(async (hosts, ca, token, csr) => {
      requested.push({ hosts, token })
      expect(parseCertificate(ca).rawSubject).toEqual(parseCertificate(fromBase64(certs.os.crt)).rawSubject)
      return signCSR(csr, {
        ca: { crt: fromBase64(certs.os.crt), key: fromBase64(certs.os.key) },
        usage: ['serverAuth'],
        lifetime: day,
        now: clock.now,
        subject: () => ({ commonName: parseCSR(csr).subject.commonName }),
      })
    }),
    issueTrustdCertificates(),
    issueEtcdCertificates(),
    issueKubeconfigs(),
    issueApiServerCertificates(),
  )
  runtime.start()
  const configure = (type: 'controlplane' | 'worker', patch: (text: string) => string = (text) => text) => {
    const config = generate(type, {
      clusterName: 'demo',
      endpoint: 'https://lb.example:6443',
      secrets,
      additionalSans: ['extra.example', '192.0.2.1'],
    })
    store.put(MachineConfig, 'v1alpha1', patch(config.toString()))
  }
  const addresses = (...list: string[]) => {
    store.put(NodeAddress, 'accumulative', { addresses: [...list, '10.244.0.1/24'], sortAlgorithm: 'v1' })
    store.put(NodeAddress, 'accumulative-no-k8s', { addresses: list, sortAlgorithm: 'v1' })
  }
  store.put(NetworkStatus, 'status', { addressReady: true, connectivityReady: true, hostnameReady: true, etcFilesReady: true })
  store.put(TimeStatus, 'node', { synced: true, epoch: 0, syncDisabled: false })
  store.put(HostnameStatus, 'hostname', { hostname: 'node-1', domainname: 'example' })
  addresses('10.5.0.2/24')
  return { store, runtime, clock, requested, configure, addresses }
}

const read = (encoded: { crt?: string } | undefined) => parseCertificate(fromBase64(encoded?.crt ?? ''))
const authority = (encoded: { crt: string }) => parseCertificate(fromBase64(encoded.crt))

describe('a control plane', () => {
  test('signs its own certificates for the machine API', async () => {
    const { store, runtime, configure } = machine()
    configure('controlplane')
    await runtime.settled()
    const { server, client, acceptedCAs, skipVerifyingClientCert } = store.get(ApiCertificate, 'api')!.spec
    expect(skipVerifyingClientCert).toBe(false)
    expect(acceptedCAs).toEqual([{ crt: certs.os.crt }])
    expect(read(server).subject).toEqual({ commonName: 'node-1.example' })
    expect(read(server).extensions).toMatchObject({ extendedKeyUsage: ['serverAuth'], keyUsage: ['digitalSignature'] })
    expect(read(server).extensions.altNames?.dns).toEqual(['node-1', 'node-1.example', 'extra.example'])
    expect(read(server).extensions.altNames?.ips).toEqual(['10.5.0.2', '192.0.2.1', '127.0.0.1', '::1'])
    expect(read(client).subject).toEqual({ commonName: 'node-1.example', organizations: ['os:impersonator'] })
    expect(read(client).extensions.extendedKeyUsage).toEqual(['clientAuth'])
    expect(issuedBy(read(server), authority(certs.os))).toBe(true)
    expect(read(store.get(TrustdCertificate, 'trustd')?.spec.server).extensions.keyUsage).toEqual(['digitalSignature', 'keyEncipherment'])
  })

  test('is called by pods with the names of its service, when they may call it', async () => {
    const { store, runtime, configure } = machine()
    const access = '    kubernetesTalosAPIAccess: {enabled: true}\n'
    configure('controlplane', (text) => text.replace(/^ {2}features:\n/m, (line) => line + access))
    await runtime.settled()
    const { server } = store.get(ApiCertificate, 'api')!.spec
    expect(read(server).extensions.altNames?.dns).toEqual(['node-1', 'node-1.example', 'extra.example', 'talos', 'talos.default'])
  })

  test('signs those of etcd and of Kubernetes, without the addresses of pods', async () => {
    const { store, runtime, configure } = machine()
    configure('controlplane')
    await runtime.settled()
    const etcd = store.get(EtcdSecret, 'etcd')!.spec
    expect(read(etcd.etcd).extensions.altNames?.ips).toEqual(['10.5.0.2', '127.0.0.1', '::1'])
    expect(read(etcd.etcdPeer).extensions.extendedKeyUsage).toEqual(['serverAuth', 'clientAuth'])
    expect(read(etcd.etcdAdmin).subject).toEqual({ commonName: 'talos' })
    for (const one of Object.values(etcd)) expect(issuedBy(read(one), authority(certs.etcd))).toBe(true)
    const k8s = store.get(KubernetesDynamicCert, 'k8s-dynamic-certs')!.spec
    expect(read(k8s.apiServer).subject).toEqual({ commonName: 'kube-apiserver', organizations: ['kube-master'] })
    expect(read(k8s.apiServer).extensions.altNames?.dns).toContain('kubernetes.default.svc.cluster.local')
    expect(read(k8s.apiServer).extensions.altNames?.dns).toContain('lb.example')
    expect(read(k8s.apiServer).extensions.altNames?.ips).toEqual(
      expect.arrayContaining(['10.5.0.2', '10.96.0.1', '127.0.0.1', '192.0.2.1']),
    )
    expect(read(k8s.apiServer).extensions.altNames?.ips).not.toContain('10.244.0.1')
    expect(issuedBy(read(k8s.frontProxy), authority(certs.k8saggregator))).toBe(true)
    expect(store.get(KubernetesSecret, 'k8s-certs')?.spec.adminKubeconfig).toContain('https://lb.example:6443')
  })

  test('makes new ones when its addresses change', async () => {
    const { store, runtime, configure, addresses } = machine()
    configure('controlplane')
    await runtime.settled()
    const before = store.get(ApiCertificate, 'api')!.spec
    addresses('10.5.0.9/24')
    await runtime.settled()
    const after = store.get(ApiCertificate, 'api')!.spec
    expect(read(after.server).extensions.altNames?.ips).toContain('10.5.0.9')
    expect(after.client).toEqual(before.client!)
  })

  test('renews at half of the lifetime, and not before', async () => {
    const { store, runtime, configure, clock, addresses } = machine()
    configure('controlplane')
    await runtime.settled()
    const serial = () => read(store.get(ApiCertificate, 'api')!.spec.client).serial
    const k8s = () => read(store.get(KubernetesDynamicCert, 'k8s-dynamic-certs')!.spec.apiServerKubeletClient).serial
    const [first, kubelet] = [serial(), k8s()]
    clock.now = new Date(clock.now.getTime() + day / 2 - 300_000)
    addresses('10.5.0.3/24')
    await runtime.settled()
    expect(serial()).toBe(first)
    clock.now = new Date(clock.now.getTime() + 600_000)
    addresses('10.5.0.4/24')
    await runtime.settled()
    expect(serial()).not.toBe(first)
    expect(k8s()).toBe(kubelet)
    clock.now = new Date(clock.now.getTime() + year / 2)
    addresses('10.5.0.5/24')
    await runtime.settled()
    expect(k8s()).not.toBe(kubelet)
  })
})

describe('a worker', () => {
  test('has its certificate signed by trustd and forwards nothing', async () => {
    const { store, runtime, configure, requested } = machine()
    configure('worker')
    await runtime.settled()
    expect(store.get(ApiCertificate, 'api')).toBeUndefined()
    store.put(Endpoint, 'discovery', { addresses: ['10.5.0.10', '10.5.0.11'], hosts: [] })
    await runtime.settled()
    expect(requested).toEqual([{ hosts: ['10.5.0.10', '10.5.0.11'], token: 'token' }])
    const { server, client, acceptedCAs } = store.get(ApiCertificate, 'api')!.spec
    expect(read(server).subject).toEqual({ commonName: 'node-1.example' })
    expect(read(server).extensions.altNames?.ips).toContain('10.5.0.2')
    expect(client).toBeUndefined()
    expect(acceptedCAs).toEqual([{ crt: certs.os.crt }])
  })

  test.each([
    ['alone', [], ['cluster.example']],
    ['behind the addresses', ['10.5.0.10'], ['10.5.0.10', 'cluster.example']],
  ] as [string, string[], string[]][])('requests its certificate at the name of the control plane, %s', async (_, addresses, hosts) => {
    const { store, runtime, configure, requested } = machine()
    store.put(Endpoint, 'controlplane', { addresses: [], hosts: ['cluster.example'] })
    store.put(Endpoint, 'discovery', { addresses, hosts: [] })
    configure('worker')
    await runtime.settled()
    expect(requested).toEqual([{ hosts, token: 'token' }])
  })

  test('keeps its certificate while no control plane is known, and holds no secrets of the control plane', async () => {
    const { store, runtime, configure } = machine()
    configure('worker')
    store.put(Endpoint, 'discovery', { addresses: ['10.5.0.10'], hosts: [] })
    await runtime.settled()
    const before = store.get(ApiCertificate, 'api')!.spec
    store.destroy(Endpoint, 'discovery')
    await runtime.settled()
    expect(store.get(ApiCertificate, 'api')?.spec).toEqual(before)
    for (const type of [TrustdCertificate, EtcdSecret, KubernetesSecret, KubernetesDynamicCert])
      expect(store.list<unknown>(type as never)).toEqual([])
  })
})

test('without a configuration the API uses a certificate of a throw-away authority', async () => {
  const { store, runtime, configure } = machine()
  store.put(MaintenanceServiceRequest, 'maintenance', {})
  await runtime.settled()
  const { server, client, skipVerifyingClientCert } = store.get(ApiCertificate, 'api')!.spec
  expect(skipVerifyingClientCert).toBe(true)
  expect(client).toBeUndefined()
  expect(read(server).subject).toEqual({ commonName: 'maintenance-service.talos.dev' })
  configure('controlplane')
  await runtime.settled()
  expect(store.get(ApiCertificate, 'api')?.spec.skipVerifyingClientCert).toBe(false)
})
