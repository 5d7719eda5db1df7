import { expect, test } from 'bun:test'
import { identityOf, inventoryKey } from '../../src/kube/inventory.ts'

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
