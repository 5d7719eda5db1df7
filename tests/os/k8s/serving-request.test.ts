import { expect, test } from 'bun:test'
import type { KubeObject } from '../../../src/kube/object.ts'
import { movable } from '../../../src/os/k8s/drain.ts'
import { servingRequestProblem } from '../../../src/os/k8s/serving-request.ts'
import { newKey } from '../../../src/pki/key.ts'
import { newCSR } from '../../../src/pki/request.ts'

const node: KubeObject = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n1' },
  status: {
    addresses: [
      { type: 'InternalIP', address: '10.5.0.2' },
      { type: 'Hostname', address: 'n1' },
    ],
  },
}
const asked = (spec: Record<string, unknown> = {}, commonName = 'system:node:n1', sans = { dns: ['n1'], ips: ['10.5.0.2'] }) => {
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
  expect(servingRequestProblem(asked(), node)).toBeUndefined()
})

test.each([
  ['somebody else asks', asked({ username: 'admin' }), 'who asks is not a node'],
  ['it is not in the group of nodes', asked({ groups: [] }), 'who asks is not a node'],
  ['it could be used as a client', asked({ usages: ['server auth', 'client auth'] }), 'it is not for serving alone'],
  ['it is for another node', asked({}, 'system:node:n2'), 'the subject "system:node:n2" is not the one who asks'],
  [
    'it names a foreign address',
    asked({}, undefined, { dns: ['n1'], ips: ['10.5.0.3'] }),
    '"10.5.0.3" is not a name or address of the node',
  ],
  [
    'it names a foreign host',
    asked({}, undefined, { dns: ['kubernetes.default'], ips: [] }),
    '"kubernetes.default" is not a name or address of the node',
  ],
  ['it names nothing', asked({}, undefined, { dns: [], ips: [] }), 'it names no address'],
])('none is given when %s', (_, request, problem) => {
  expect(servingRequestProblem(request, node)).toBe(problem)
})

test('none is given to a node that is not there, or for something unreadable', () => {
  expect(servingRequestProblem(asked(), undefined)).toBe('node "n1" is not in the cluster')
  expect(servingRequestProblem(asked({ request: btoa('x') }), node)).toBeString()
})

test('pods of daemons, static pods and finished ones are not moved', () => {
  const pod = (metadata: Record<string, unknown>, phase = 'Running') =>
    ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', ...metadata }, status: { phase } }) as KubeObject
  expect(movable(pod({ ownerReferences: [{ kind: 'ReplicaSet', name: 'r', controller: true }] }))).toBe(true)
  expect(movable(pod({ ownerReferences: [{ kind: 'DaemonSet', name: 'd', controller: true }] }))).toBe(false)
  expect(movable(pod({ annotations: { 'kubernetes.io/config.mirror': 'x' } }))).toBe(false)
  expect(movable(pod({}, 'Succeeded'))).toBe(false)
})
