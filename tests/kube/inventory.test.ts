import { expect, test } from 'bun:test'
import { kubeClient } from '../../src/kube/client.ts'
import { identityOf, inventoryKey, writeInventory } from '../../src/kube/inventory.ts'

const object = (apiVersion: string, kind: string, name: string, namespace?: string) => ({ apiVersion, kind, metadata: { name, namespace } })

test.each([
  [object('v1', 'Namespace', 'kube-flannel'), '_kube-flannel__Namespace'],
  [object('apps/v1', 'DaemonSet', 'kube-proxy', 'kube-system'), 'kube-system_kube-proxy_apps_DaemonSet'],
  [
    object('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', 'system:coredns'),
    '_system__coredns_rbac.authorization.k8s.io_ClusterRoleBinding',
  ],
])('%j has a key from which it is found again', (one, key) => {
  expect(inventoryKey(one)).toBe(key)
  const { name, namespace = '' } = one.metadata
  const group = one.apiVersion.includes('/') ? one.apiVersion.split('/')[0] : ''
  expect(identityOf(key)).toEqual({ name, namespace, group: group ?? '', kind: one.kind })
})

test.each(['', 'nothing', 'a_b', '_b', 'a__b_c'])('"%s" is no key', (key) => {
  expect(identityOf(key)).toBeUndefined()
})

test('keys that somebody else wrote do not stay when the list is replaced', async () => {
  const seen: unknown[] = []
  const api = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request): Promise<Response> {
      const body = (await request.json()) as { data: Record<string, string | null> }
      seen.push([request.method, request.headers.get('content-type'), body.data])
      return Response.json({ ...body, data: { ...body.data, 'by-hand': '' } })
    },
  })
  const client = kubeClient({ server: `http://127.0.0.1:${api.port}`, ca: '' })
  await writeInventory(client, ['b', 'a'])
  expect(seen).toEqual([
    ['PATCH', 'application/apply-patch+yaml', { a: '', b: '' }],
    ['PATCH', 'application/merge-patch+json', { 'by-hand': null }],
  ])
  client.close()
  await api.stop(true)
})
