import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createLogger, type LogEntry } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { buildKubeconfig, formatKubeconfig } from '../../../../src/kube/kubeconfig.ts'
import type { KubeObject } from '../../../../src/kube/object.ts'
import { DiscoveryConfig } from '../../../../src/os/cluster/resources/discovery-config.ts'
import { Member } from '../../../../src/os/cluster/resources/member.ts'
import { MachineConfig } from '../../../../src/os/config/resources/machine-config.ts'
import { approveServingCertificates } from '../../../../src/os/k8s/controllers/kubelet/serving-certificates.ts'
import { CertSAN } from '../../../../src/os/secrets/resources/cert-san.ts'
import { KubernetesSecret } from '../../../../src/os/secrets/resources/kubernetes-secret.ts'
import { newKey } from '../../../../src/pki/key.ts'
import { newCSR } from '../../../../src/pki/request.ts'
import { shortenDelays } from '../../../support/short-delays.ts'
import { config } from '../../config/machine.ts'

shortenDelays()

/** An API server with two nodes, requests for certificates, and what was decided of each. */
const cluster = { requests: [] as KubeObject[], decisions: {} as Record<string, string>, lists: 0 }
let server: ReturnType<typeof Bun.serve>
beforeEach(() => {
  Object.assign(cluster, { requests: [], decisions: {}, lists: 0 })
  server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(incoming) {
      const { pathname, searchParams } = new URL(incoming.url)
      const list = (items: unknown[]) => Response.json({ metadata: { resourceVersion: '1' }, items })
      if (searchParams.has('watch')) return new Response(new ReadableStream({ start() {} }))
      if (pathname.endsWith('/nodes')) return list([nodeOf('n1', '10.5.0.2', lie), nodeOf('n2', '10.5.0.3')])
      const [, decided] = /\/certificatesigningrequests\/([^/]+)\/approval$/.exec(pathname) ?? []
      if (decided !== undefined) {
        const { status } = (await incoming.json()) as { status: { conditions: { type: string }[] } }
        cluster.decisions[decided] = status.conditions.map(({ type }) => type).join()
        return Response.json({})
      }
      if (searchParams.get('fieldSelector') !== 'spec.signerName=kubernetes.io/kubelet-serving') return list([])
      cluster.lists++
      return list(cluster.requests)
    },
  })
})
const stops: (() => void)[] = []
afterEach(() => {
  for (const stop of stops.splice(0)) stop()
  server.stop(true)
})

/** An address of a service, which node n1 claims for itself everywhere. */
const lie = '10.96.0.10'

const nodeOf = (name: string, ...addresses: string[]) => ({
  metadata: { name, labels: {} },
  status: {
    addresses: [...addresses.map((address) => ({ type: 'InternalIP', address })), { type: 'Hostname', address: name }],
  },
})

/** A request of node n1. */
const request = (name: string, dns: string[], ips: string[]): KubeObject => {
  const subject = { commonName: 'system:node:n1', organizations: ['system:nodes'] }
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      username: 'system:node:n1',
      groups: ['system:nodes', 'system:authenticated'],
      usages: ['digital signature', 'server auth'],
      request: btoa(newCSR({ subject, sans: { dns, ips }, key: newKey('ecdsa') }).csr),
    },
  }
}

const kubeconfig = () =>
  formatKubeconfig(buildKubeconfig({ cluster: 'c', user: 'u', context: 'x', server: `http://127.0.0.1:${server.port}`, ca: 'CA' }))
const memberOf = (name: string, ...addresses: string[]) => ({
  nodeId: name,
  addresses,
  hostname: name,
  machineType: 'worker' as const,
  operatingSystem: '',
})

interface Options {
  type?: 'controlplane' | 'worker'
  requested?: boolean
  discovery?: boolean
}

/** A node with the records of a cluster of two workers. */
function node({ type = 'controlplane', requested = true, discovery = true }: Options = {}) {
  const store = new Store()
  const entries: LogEntry[] = []
  const runtime = new Runtime(store, { log: createLogger((entry) => entries.push(entry)) })
  runtime.register(approveServingCertificates())
  const section = `machine: { kubelet: { extraArgs: { rotate-server-certificates: "${requested}" } } }`
  store.put(MachineConfig, 'v1alpha1', config(type, section))
  store.put(KubernetesSecret, 'k8s-certs', {
    schedulerKubeconfig: '',
    controllerManagerKubeconfig: '',
    localhostAdminKubeconfig: kubeconfig(),
    adminKubeconfig: '',
  })
  store.put(CertSAN, 'k8s', { fqdn: '', dnsNames: ['kubernetes', 'api.example.org'], ips: ['10.5.0.100'] })
  store.put(DiscoveryConfig, 'cluster', {
    discoveryEnabled: discovery,
    registryKubernetesEnabled: false,
    registryServiceEnabled: discovery,
    serviceEndpoint: '',
    serviceEncryptionKey: new Uint8Array(),
    serviceClusterID: '',
  })
  if (discovery) {
    store.put(Member, 'n1', memberOf('n1', '10.5.0.2', 'fd00::2', lie))
    store.put(Member, 'n2', memberOf('n2', '10.5.0.3'))
  }
  runtime.start()
  stops.push(() => runtime.stop())
  /** Requests that were not approved, with the reason. */
  const held = () => {
    const lines = entries.filter(({ message }) => message === 'kubelet serving certificate not approved')
    return Object.fromEntries(lines.map(({ fields }) => [fields!.request, fields!.reason]))
  }
  return { store, runtime, held }
}

async function until(holds: () => boolean): Promise<void> {
  for (const end = performance.now() + 10_000; !holds(); await Bun.sleep(5))
    if (performance.now() > end) throw new Error('it does not come')
}

test('only names and addresses that the cluster attributes to the node are approved; nothing is denied', async () => {
  cluster.requests = [
    request('own', ['n1'], ['10.5.0.2', 'fd00::2']),
    request('address-of-another', ['n1'], ['10.5.0.3']),
    request('name-of-another', ['n2'], ['10.5.0.2']),
    request('name-of-the-api-server', ['api.example.org'], ['10.5.0.2']),
    request('address-of-the-api-server', ['n1'], ['10.5.0.100']),
    request('address-of-a-service', ['n1'], [lie]),
  ]
  const { held } = node()
  await until(() => Object.keys(held()).length === 5 && cluster.decisions.own !== undefined)
  expect(cluster.decisions).toEqual({ own: 'Approved' })
  expect(held()).toEqual({
    'address-of-another': '"10.5.0.3" is not a name or address of the node',
    'name-of-another': '"n2" is not a name or address of the node',
    'name-of-the-api-server': '"api.example.org" is the API server\'s',
    'address-of-the-api-server': '"10.5.0.100" is the API server\'s',
    'address-of-a-service': '"10.96.0.10" stands for no single node',
  })
})

test('a request waits until discovery knows the node, and needs no discovery where that is off', async () => {
  cluster.requests = [request('new', ['n1'], ['10.5.0.2'])]
  const { store, held, runtime } = node()
  store.destroy(Member, 'n1')
  await until(() => held().new !== undefined)
  expect(cluster.decisions).toEqual({})
  store.put(Member, 'n1', memberOf('n1', '10.5.0.2'))
  await until(() => cluster.decisions.new === 'Approved')
  runtime.stop()

  cluster.decisions = {}
  node({ discovery: false })
  await until(() => cluster.decisions.new === 'Approved')
})

test.each([
  ['kubelets do not request certificates', { requested: false }],
  ['the node is a worker', { type: 'worker' }],
] as const)('nothing is approved where %s', async (_, options) => {
  cluster.requests = [request('own', ['n1'], ['10.5.0.2'])]
  const { runtime } = node(options)
  await runtime.settled()
  await Bun.sleep(50)
  expect([cluster.lists, cluster.decisions]).toEqual([0, {}])
})
