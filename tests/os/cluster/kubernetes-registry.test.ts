import { describe, expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import type { KubeObject } from '../../../src/kube/object.ts'
import type { WatchEvent } from '../../../src/kube/watch-events.ts'
import { pullFromKubernetes, pushToKubernetes } from '../../../src/os/cluster/controllers/kubernetes-registry.ts'
import { readAnnotations, writeAnnotations } from '../../../src/os/cluster/discovery/annotations.ts'
import { Affiliate } from '../../../src/os/cluster/resources/affiliate.ts'
import { DiscoveryConfig } from '../../../src/os/cluster/resources/discovery-config.ts'
import { Identity } from '../../../src/os/cluster/resources/identity.ts'
import { NodeAnnotationSpec } from '../../../src/os/k8s/resources/node.ts'
import { Nodename } from '../../../src/os/k8s/resources/nodename.ts'

const spec = {
  nodeId: 'b',
  addresses: ['10.0.0.2', 'fd00::2'],
  hostname: 'node-b',
  nodename: 'node-b',
  operatingSystem: 'Ichor (v1.13.0)',
  machineType: 'controlplane' as const,
  kubespan: {
    publicKey: 'a2V5',
    address: 'fd7f::2',
    additionalAddresses: ['10.244.2.0/24'],
    endpoints: ['10.0.0.2:51820', '[fd00::2]:51820'],
    excludeAdvertisedNetworks: ['192.168.0.0/16'],
  },
  controlPlane: { port: 6443 },
}
const node = (name: string, annotations: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, annotations, labels: { 'kubernetes.io/hostname': name, 'node-role.kubernetes.io/control-plane': '' } },
  status: { nodeInfo: { osImage: 'Ichor (v1.13.0)' } },
})

describe('annotations of a node', () => {
  test('are as others of the field write and read them', () => {
    expect(writeAnnotations(spec)).toEqual({
      'cluster.talos.dev/node-id': 'b',
      'networking.talos.dev/self-ips': '10.0.0.2,fd00::2',
      'networking.talos.dev/api-server-port': '6443',
      'networking.talos.dev/kubespan-ip': 'fd7f::2',
      'networking.talos.dev/kubespan-public-key': 'a2V5',
      'networking.talos.dev/assigned-prefixes': '10.244.2.0/24',
      'networking.talos.dev/kubespan-endpoints': '10.0.0.2:51820,[fd00::2]:51820',
      'networking.talos.dev/kubespan-exclude-advertised-networks': '192.168.0.0/16',
    })
    expect(readAnnotations(node('node-b', writeAnnotations(spec)))).toEqual(spec)
  })

  test('that do not read are left out, whatever they hold', () => {
    const lies = { ...writeAnnotations(spec), 'networking.talos.dev/self-ips': 'x,10.0.0.2', 'networking.talos.dev/api-server-port': '-1' }
    expect(readAnnotations(node('node-b', lies))).toMatchObject({ addresses: ['10.0.0.2'] })
    expect(readAnnotations(node('node-b', {}))).toBeUndefined()
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...Object.keys(writeAnnotations(spec))), fc.string()), (annotations) => {
        const read = readAnnotations(node('n', annotations))
        if (read) new Store().put(Affiliate, 'n', read)
      }),
    )
  })
})

test('a node publishes itself by annotations, and reads the others from theirs', async () => {
  const store = new Store()
  const os = new Runtime(store, { log: silent })
  const events: WatchEvent[] = []
  let more = () => {}
  const client = {
    list: async () => ({
      items: [node('node-a', writeAnnotations({ ...spec, nodeId: 'a' })), node('node-b', writeAnnotations(spec))],
      resourceVersion: '1',
    }),
    async *watch(_: unknown, __: unknown, { signal }: { signal: AbortSignal }) {
      while (!signal.aborted) {
        yield* events.splice(0)
        await new Promise<void>((resolve) => {
          more = resolve
          signal.addEventListener('abort', () => resolve())
        })
      }
    },
    close() {},
  }
  os.register(
    pushToKubernetes,
    pullFromKubernetes(
      () => ({ server: 'https://x', ca: '' }),
      () => client as never,
    ),
  )
  os.start()
  store.put(DiscoveryConfig, 'cluster', {
    discoveryEnabled: true,
    registryKubernetesEnabled: true,
    registryServiceEnabled: false,
    serviceEndpoint: '',
    serviceEncryptionKey: new Uint8Array(32),
    serviceClusterID: 'c',
  })
  store.put(Identity, 'local', { nodeId: 'a' })
  store.put(Nodename, 'nodename', { nodename: 'node-a', hostnameVersion: '1', skipNodeRegistration: false })
  store.put(Affiliate, 'a', { ...spec, nodeId: 'a' })
  const learned = await store.until(Affiliate, 'k8s/b', () => true, { namespace: 'cluster-raw', signal: AbortSignal.timeout(60_000) })
  expect(learned.spec).toEqual(spec)
  expect(store.get(Affiliate, 'k8s/a', { namespace: 'cluster-raw' })).toBeUndefined()
  expect(store.get(NodeAnnotationSpec, 'cluster.talos.dev/node-id')?.spec.value).toBe('a')
  const gone = new Promise<void>((resolve) => {
    store.subscribe(Affiliate, () => store.get(Affiliate, 'k8s/b', { namespace: 'cluster-raw' }) ?? resolve(), { namespace: 'cluster-raw' })
  })
  events.push({ type: 'DELETED', object: node('node-b', {}) })
  more()
  await gone
  os.stop()
})
