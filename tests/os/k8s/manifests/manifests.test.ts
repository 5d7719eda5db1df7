import { expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import { kubeClient } from '../../../../src/kube/client.ts'
import type { KubeObject } from '../../../../src/kube/object.ts'
import { apiReady, applyManifests } from '../../../../src/os/k8s/apply-manifests.ts'
import { configBootstrapManifests } from '../../../../src/os/k8s/controllers/manifests/bootstrap-manifests-config.ts'
import { loadExtraManifests } from '../../../../src/os/k8s/controllers/manifests/extra-manifests.ts'
import { configExtraManifests } from '../../../../src/os/k8s/controllers/manifests/extra-manifests-config.ts'
import { network } from '../../../../src/os/k8s/manifests/flannel.ts'
import { bootstrapManifests } from '../../../../src/os/k8s/manifests/manifests.ts'
import { podNetworkConflist } from '../../../../src/os/k8s/pod-network.ts'
import { BootstrapManifestsConfig } from '../../../../src/os/k8s/resources/bootstrap-manifests-config.ts'
import { Manifest } from '../../../../src/os/k8s/resources/manifest.ts'
import { controlPlane, machineWith } from '../machine.ts'

const token = { bootstrapTokenID: 'abcdef', bootstrapTokenSecret: '0123456789abcdef' }

async function manifestsOf(cluster = '', machine = '') {
  const { store, settled } = machineWith([configBootstrapManifests], controlPlane(machine, cluster))
  await settled()
  const config = store.get(BootstrapManifestsConfig, 'manifests')!.spec
  return { config, manifests: bootstrapManifests(config, token) }
}

test('a new cluster is given these, in this order', async () => {
  const { config, manifests } = await manifestsOf('', 'features:\n  kubePrism: {enabled: true}')
  expect(Object.keys(manifests).sort()).toEqual([
    '00-kubelet-bootstrapping-token',
    '01-csr-approver-role-binding',
    '01-csr-node-bootstrap',
    '01-csr-renewal-role-binding',
    '05-flannel',
    '10-kube-proxy',
    '11-core-dns',
    '11-core-dns-svc',
    '11-kube-config-in-cluster',
    '11-talos-node-rbac-template',
  ])
  expect(config.proxyArgs).toEqual([
    '--cluster-cidr=10.244.0.0/16',
    '--conntrack-max-per-core=0',
    '--hostname-override=$(NODE_NAME)',
    '--kubeconfig=/etc/kubernetes/kubeconfig',
    '--proxy-mode=nftables',
  ])
  expect(config).toMatchObject({ string: 'https://127.0.0.1:7445', dnsServiceIP: '10.96.0.10', flannelKubeServicePort: '7445' })
  const secret = manifests['00-kubelet-bootstrapping-token']![0]!
  expect(secret.metadata.name).toBe('bootstrap-token-abcdef')
  expect((secret.data as Record<string, string>)['token-secret']).toBe(btoa('0123456789abcdef'))
})

test('what is switched off is left out', async () => {
  const { manifests } = await manifestsOf('network:\n  cni: {name: none}\nproxy: {disabled: true}\ncoreDNS: {disabled: true}')
  const ids = Object.keys(manifests)
  for (const id of ['05-flannel', '10-kube-proxy', '11-core-dns', '11-core-dns-svc']) expect(ids).not.toContain(id)
})

test('services and pods of both families', async () => {
  const { config, manifests } = await manifestsOf(`network:
  podSubnets: [10.1.0.0/16, 'fd00:1::/56']
  serviceSubnets: [10.2.0.0/16, 'fd00:2::/112']`)
  expect(config).toMatchObject({ dnsServiceIP: '10.2.0.10', dnsServiceIPv6: 'fd00:2::a' })
  expect(manifests['11-core-dns-svc']![0]!.spec).toMatchObject({
    clusterIPs: ['10.2.0.10', 'fd00:2::a'],
    ipFamilyPolicy: 'RequireDualStack',
  })
  expect(network(config.podCIDRs)).toMatchObject({ Network: '10.1.0.0/16', EnableIPv6: true, IPv6Network: 'fd00:1::/56' })
  const conflist = JSON.parse(podNetworkConflist({ podCIDRs: ['10.1.3.0/24', 'fd00:1:3::/64'], mtu: 1450 }))
  expect(conflist.plugins[0].ipam.ranges).toEqual([[{ subnet: '10.1.3.0/24' }], [{ subnet: 'fd00:1:3::/64' }]])
  expect(conflist.plugins[0].ipam.routes).toEqual([{ dst: '0.0.0.0/0' }, { dst: '::/0' }])
})

test('an older proxy falls back to iptables', async () => {
  const { config } = await manifestsOf('proxy: {image: "registry.k8s.io/kube-proxy:v1.30.1"}')
  expect(config.proxyArgs).toContain('--proxy-mode=iptables')
})

test('extra manifests are named by priority; one that is broken holds up none of the others', async () => {
  const web = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) =>
      request.url.endsWith('/good.yaml') && request.headers.get('x-key') === 'k'
        ? new Response('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}')
        : new Response('gone', { status: 404 }),
  })
  const at = (name: string) => `http://127.0.0.1:${web.port}/${name}`
  const { store, settled, runtime } = machineWith(
    [configExtraManifests, loadExtraManifests({ outbound: { fetch } })],
    controlPlane(
      '',
      `extraManifestHeaders: {x-key: k}
extraManifests: ['${at('good.yaml')}', '${at('missing.yaml')}']
inlineManifests:
  - {name: mine, contents: "apiVersion: v1\\nkind: Namespace\\nmetadata: {name: mine}"}
  - {name: broken, contents: "kind: Nothing"}`,
    ),
  )
  await settled()
  expect(store.list(Manifest).map(({ metadata }) => metadata.id)).toEqual([`99-${at('good.yaml')}`, '99-mine'])
  runtime.stop()
  await web.stop(true)
})

test('headers of extra manifests are not sent to other hosts that a redirect leads to', async () => {
  const seen: (string | null)[] = []
  const manifest = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}'
  const serve = (fetch: (request: Request) => Response) => Bun.serve({ hostname: '127.0.0.1', port: 0, fetch })
  const other = serve((request) => {
    seen.push(request.headers.get('x-key'))
    return new Response(manifest)
  })
  const web = serve((request) => {
    if (request.url.endsWith('/own')) seen.push(request.headers.get('x-key'))
    if (request.url.endsWith('/own')) return new Response(manifest)
    return new Response('', { status: 302, headers: { location: request.url.endsWith('/a') ? '/own' : other.url.href } })
  })
  const { settled, runtime } = machineWith(
    [configExtraManifests, loadExtraManifests({ outbound: { fetch } })],
    controlPlane('', `extraManifestHeaders: {x-key: k}\nextraManifests: ['${web.url.href}a', '${web.url.href}b']`),
  )
  await settled()
  expect(seen).toEqual(['k', null])
  runtime.stop()
  await Promise.all([web.stop(true), other.stop(true)])
})

test('what a new cluster lacks is created in order, and listed in the inventory beside what was there', async () => {
  const seen: string[] = []
  const missing = () => Response.json({ kind: 'Status', reason: 'NotFound', message: 'not there' }, { status: 404 })
  let inventory: { metadata?: object; data: Record<string, string> } | undefined
  let ready = 0
  const api = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      if (pathname === '/readyz') return new Response('ok', { status: ready++ === 0 ? 500 : 200 })
      if (request.method === 'GET') {
        if (pathname === '/api/v1') return Response.json({ resources: [{ name: 'namespaces', kind: 'Namespace', namespaced: false }] })
        if (pathname === '/apis/example.org/v1') return Response.json({ resources: [{ name: 'things', kind: 'Thing', namespaced: true }] })
        if (pathname.endsWith('/talos-bootstrap-manifests-inventory')) return inventory ? Response.json(inventory) : missing()
        return /\/(taken|kube-system)$/.test(pathname) ? Response.json({}) : missing()
      }
      seen.push(`${request.method} ${pathname} ${searchParams.get('fieldManager')}`)
      const body = (await request.json()) as { metadata: { annotations?: Record<string, string> }; data: Record<string, string> }
      if (pathname.endsWith('/bad')) return Response.json({ kind: 'Status', reason: 'Invalid', message: 'no' }, { status: 422 })
      if (pathname.endsWith('-inventory')) inventory = body
      else expect(body.metadata.annotations).toEqual({ 'config.k8s.io/owning-inventory': 'talos-bootstrap-manifests-inventory' })
      return Response.json({})
    },
  })
  const client = kubeClient({ server: `http://127.0.0.1:${api.port}`, ca: '' })
  const signal = new AbortController().signal
  await apiReady(client, signal)
  const object = (apiVersion: string, kind: string, name: string): KubeObject => ({ apiVersion, kind, metadata: { name } })
  const manifests = [
    { id: '00-a', objects: [object('v1', 'ConfigMap', 'taken'), object('v1', 'Namespace', 'early')] },
    { id: '01-b', objects: [object('v1', 'ConfigMap', 'bad'), object('example.org/v1', 'Thing', 'x')] },
  ]
  const apply = () => applyManifests(client, manifests, { log: silent, signal })
  await expect(apply()).rejects.toMatchObject({ reason: 'Invalid' })
  expect(seen.splice(0)).toEqual([
    'PATCH /api/v1/namespaces/early talos',
    'PATCH /api/v1/namespaces/default/configmaps/bad talos',
    'PATCH /apis/example.org/v1/namespaces/default/things/x talos',
    'PATCH /api/v1/namespaces/kube-system/configmaps/talos-bootstrap-manifests-inventory talos',
  ])
  expect(Object.keys(inventory?.data ?? {})).toEqual(['_early__Namespace', 'default_taken__ConfigMap', 'default_x_example.org_Thing'])
  // What is in the inventory was removed by somebody since, and stays so.
  await expect(apply()).rejects.toMatchObject({ reason: 'Invalid' })
  expect(seen).toEqual(['PATCH /api/v1/namespaces/default/configmaps/bad talos'])
  client.close()
  await api.stop(true)
})
