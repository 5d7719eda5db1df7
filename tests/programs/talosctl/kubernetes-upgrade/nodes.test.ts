import { afterEach, beforeEach, expect, test } from 'bun:test'
import { detectVersion, nodesOf } from '../../../../src/programs/talosctl/kubernetes-upgrade/nodes.ts'
import { versionOf } from '../../../../src/programs/talosctl/kubernetes-upgrade/versions.ts'
import { kubernetesInMemory } from './kubernetes.ts'

let api: ReturnType<typeof kubernetesInMemory>
beforeEach(() => {
  api = kubernetesInMemory()
})
afterEach(() => api.close())

const to = versionOf('1.36.3')!

function addNode(name: string, addresses: object[], { controlPlane = false, kubelet = 'v1.35.4' } = {}): void {
  const labels: Record<string, string> = controlPlane ? { 'node-role.kubernetes.io/control-plane': '' } : {}
  api.put({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, status: { addresses, nodeInfo: { kubeletVersion: kubelet } } })
}
const internal = (address: string) => ({ type: 'InternalIP', address })

function addPod(component: string, image: string, container = component): void {
  const metadata = { name: component, namespace: 'kube-system', labels: { 'k8s-app': component } }
  api.put({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [{ name: container, image }] } })
}

test('control planes come before workers, each with its internal address, or else its external one', async () => {
  addNode('w', [{ type: 'ExternalIP', address: '192.0.2.1' }])
  addNode('c', [{ type: 'Hostname', address: 'c' }, { type: 'ExternalIP', address: '192.0.2.2' }, internal('10.0.0.2')], {
    controlPlane: true,
  })
  expect(await nodesOf(api.client, to)).toEqual([
    { address: '10.0.0.2', name: 'c', controlPlane: true },
    { address: '192.0.2.1', name: 'w', controlPlane: false },
  ])
})

test.each([
  ['no control plane', () => addNode('w', [internal('10.0.0.1')]), 'no node has the label'],
  ['a node without an address', () => addNode('c', [], { controlPlane: true }), 'node "c" has no address'],
  [
    'two Nodes with one address',
    () => {
      addNode('c', [internal('10.0.0.1')], { controlPlane: true })
      addNode('gone', [internal('10.0.0.1')])
    },
    'has the same address as another one',
  ],
  [
    'a kubelet that is too old',
    () => addNode('c', [internal('10.0.0.1')], { controlPlane: true, kubelet: 'v1.32.9' }),
    'c: its kubelet is v1.32.9, more than 3 minor versions older than 1.36.3',
  ],
  [
    'a kubelet that is newer',
    () => addNode('c', [internal('10.0.0.1')], { controlPlane: true, kubelet: 'v1.37.0' }),
    'c: its kubelet is v1.37.0, newer than 1.36.3',
  ],
])('%s is refused', async (_, prepare, message) => {
  prepare()
  await expect(nodesOf(api.client, to)).rejects.toThrow(message)
})

test('the version of the cluster is the lowest one of its components, whatever the registry', async () => {
  addPod('kube-apiserver', 'localhost:5000/kube-apiserver:v1.36.3')
  addPod('kube-scheduler', 'registry.k8s.io/kube-scheduler:v1.35.4')
  addPod('kube-proxy', 'registry.k8s.io/other:v1.30.0', 'sidecar')
  addPod('coredns', 'registry.k8s.io/coredns/coredns:v1.14.7')
  expect((await detectVersion(api.client)).text).toBe('1.35.4')
})

test('without a component to read it from the version has to be named', async () => {
  await expect(detectVersion(api.client)).rejects.toThrow('name it with --from')
})
