import { describe, expect, test } from 'bun:test'
import type { KubeObject } from '../../../../src/kube/object.ts'
import { servingRequestProblem } from '../../../../src/os/k8s/kubelet/serving-request.ts'
import { newKey } from '../../../../src/pki/key.ts'
import { newCSR } from '../../../../src/pki/request.ts'
import { parseIp } from '../../../../src/wire/ip.ts'

const nodeOf = (name: string, address: string, labels: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels },
  status: {
    addresses: [
      { type: 'InternalIP', address },
      { type: 'Hostname', address: name },
      { type: 'ExternalIP', address: '203.0.113.7' },
    ],
  },
})
const controlPlaneNode = nodeOf('cp-1', '10.5.0.9', { 'node-role.kubernetes.io/control-plane': '' })
const memberOf = (nodename: string, ...addresses: string[]) => ({ nodename, hostname: `${nodename}.example.org`, addresses })
const records = {
  nodes: [nodeOf('n1', '10.5.0.2'), nodeOf('n2', '10.5.0.3'), controlPlaneNode],
  members: [memberOf('n1', '10.5.0.2', 'fd00::2'), memberOf('n2', '10.5.0.3'), memberOf('cp-1', '10.5.0.9')],
  apiServer: [
    'cp-1',
    '10.5.0.9',
    '10.5.0.100',
    'api.example.org',
    'kubernetes',
    'kubernetes.default.svc.cluster.local',
    '10.96.0.1',
    '127.0.0.1',
  ],
  serviceSubnets: ['10.96.0.0/12', 'fd00:10:96::/112'],
  dnsDomain: 'cluster.local',
}
/** What a node with stolen credentials may do: say anything of itself. */
const lying = (...addresses: string[]): KubeObject => ({
  ...nodeOf('n1', '10.5.0.2'),
  status: { addresses: addresses.map((address) => ({ type: /^[\d.:a-f]+$/.test(address) ? 'InternalIP' : 'Hostname', address })) },
})

const requested = (spec: Record<string, unknown> = {}, commonName = 'system:node:n1', sans = { dns: ['n1'], ips: ['10.5.0.2'] }) => {
  const { csr } = newCSR({ subject: { commonName, organizations: ['system:nodes'] }, sans, key: newKey('ecdsa') })
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'csr-1' },
    spec: {
      username: 'system:node:n1',
      groups: ['system:nodes', 'system:authenticated'],
      usages: ['digital signature', 'server auth'],
      request: btoa(csr),
      ...spec,
    },
  } as KubeObject
}

test('a node gets a serving certificate for what the cluster knows it by', () => {
  expect(servingRequestProblem(requested(), records)).toBeUndefined()
  const all = requested({}, undefined, { dns: ['n1', 'N1.example.org'], ips: ['10.5.0.2', 'fd00:0::2'] })
  expect(servingRequestProblem(all, records)).toBeUndefined()
  expect(servingRequestProblem(requested(), { ...records, members: undefined })).toBeUndefined()
})

test('a control plane node gets one for its own names, though they are in the API server’s certificate too', () => {
  const request = (sans: { dns: string[]; ips: string[] }) => requested({ username: 'system:node:cp-1' }, 'system:node:cp-1', sans)
  expect(servingRequestProblem(request({ dns: ['cp-1'], ips: ['10.5.0.9'] }), records)).toBeUndefined()
  expect(servingRequestProblem(request({ dns: ['cp-1'], ips: ['10.5.0.100'] }), records)).toBe(
    '"10.5.0.100" is not a name or address of the node',
  )
  expect(servingRequestProblem(request({ dns: ['kubernetes'], ips: ['10.5.0.9'] }), records)).toBe('"kubernetes" stands for no single node')
  // Its role is a label, which a node cannot give itself; without it the name is the API server's.
  const nodes = [nodeOf('cp-1', '10.5.0.9')]
  expect(servingRequestProblem(request({ dns: ['cp-1'], ips: ['10.5.0.9'] }), { ...records, nodes })).toBe('"cp-1" is the API server\'s')
})

test.each([
  ['somebody else requests', requested({ username: 'admin' }), 'the requester is not a node'],
  ['it is not in the group of nodes', requested({ groups: [] }), 'the requester is not a node'],
  ['it could be used as a client', requested({ usages: ['server auth', 'client auth'] }), 'it is not for serving alone'],
  ['it is for another node', requested({}, 'system:node:n2'), 'the subject "system:node:n2" is not the requester'],
  [
    'it names a foreign address',
    requested({}, undefined, { dns: ['n1'], ips: ['10.5.0.3'] }),
    '"10.5.0.3" is not a name or address of the node',
  ],
  [
    'it names a cloud’s address',
    requested({}, undefined, { dns: ['n1'], ips: ['203.0.113.7'] }),
    '"203.0.113.7" is not a name or address of the node',
  ],
  ['it names nothing', requested({}, undefined, { dns: [], ips: [] }), 'it names no address'],
])('none is given when %s', (_, request, problem) => {
  expect(servingRequestProblem(request, records)).toBe(problem)
})

describe.each([
  ['with discovery', records],
  ['without discovery', { ...records, members: undefined }],
  ['when discovery itself was lied to', undefined],
] as const)('%s', (_, given) => {
  test.each([
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'kubernetes.default.svc.cluster.local',
    'metrics.kube-system.svc',
    'metrics.kube-system.svc.cluster.local',
    'cluster.local',
    'localhost',
    '*.example.org',
    '*',
    'api.example.org',
    'API.example.org',
    'cp-1',
    'n2',
    '10.5.0.3',
    '10.5.0.9',
    '10.5.0.100',
    '10.96.0.1',
    '10.97.1.2',
    'fd00:10:96::1',
    '127.0.0.1',
    '127.1.2.3',
    '::1',
    '0.0.0.0',
    '::',
    '169.254.116.108',
  ])('stolen credentials of a worker get none for %s, whatever its status contains', (name) => {
    const sans = parseIp(name) ? { dns: [], ips: [name] } : { dns: [name], ips: [] }
    const nodes = [lying('n1', '10.5.0.2', name), ...records.nodes.slice(1)]
    const members = [memberOf('n1', '10.5.0.2', name), ...records.members.slice(1)]
    expect(servingRequestProblem(requested({}, undefined, sans), { ...(given ?? { ...records, members }), nodes })).toBeString()
    // An address may also be written as a name.
    if (parseIp(name))
      expect(
        servingRequestProblem(requested({}, undefined, { dns: [name], ips: [] }), { ...(given ?? { ...records, members }), nodes }),
      ).toBeString()
  })
})

test('none is given for something unreadable, or before the cluster knows the node', () => {
  expect(servingRequestProblem(requested(), { ...records, nodes: [] })).toBe('node "n1" is not in the cluster')
  expect(servingRequestProblem(requested(), { ...records, members: [] })).toBe('discovery does not know node "n1"')
  expect(servingRequestProblem(requested({ request: btoa('x') }), records)).toBeString()
})
