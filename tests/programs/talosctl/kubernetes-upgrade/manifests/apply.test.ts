import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { KubeObject } from '../../../../../src/kube/object.ts'
import {
  type ApplyManifestOptions,
  applyManifests,
  previewManifests,
} from '../../../../../src/programs/talosctl/kubernetes-upgrade/manifests/apply.ts'
import { textIo } from '../../peer.ts'
import { kubernetesInMemory } from '../kubernetes.ts'

let api: ReturnType<typeof kubernetesInMemory>
beforeEach(() => {
  api = kubernetesInMemory()
})
afterEach(() => api.close())

const inventory = '/api/v1/namespaces/kube-system/configmaps/talos-bootstrap-manifests-inventory'
const owner = 'config.k8s.io/owning-inventory'
const options: ApplyManifestOptions = { policy: 'AdoptIfNoInventory', force: false, prune: true, settleTimeout: 0 }
const settings = (value: string, annotations?: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'settings', namespace: 'kube-system', ...(annotations && { annotations }) },
  data: { key: value },
})
const path = '/api/v1/namespaces/kube-system/configmaps/settings'
const role: KubeObject = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'system:test' }, rules: [] }
const keys = () => Object.keys((api.get(inventory)?.data as Record<string, string> | undefined) ?? {})

async function apply(manifests: readonly KubeObject[], changed: Partial<ApplyManifestOptions> = {}) {
  const io = textIo()
  await applyManifests(io, api.client, manifests, { ...options, ...changed })
  return io.written.out
}

test('objects are created in stages, annotated and listed, and a second run changes nothing', async () => {
  const printed = await apply([settings('one'), role])
  expect(api.seen.filter((request) => !request.endsWith(' dry'))).toEqual([
    'PATCH /apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Atest',
    `PATCH ${path}`,
    `PATCH ${inventory}`,
  ])
  expect(keys()).toEqual(['_system__test_rbac.authorization.k8s.io_ClusterRole', 'kube-system_settings__ConfigMap'])
  expect(printed).toContain(' < created v1.ConfigMap/kube-system/settings\n--- /dev/null\n+++ b/v1.ConfigMap/kube-system/settings\n')
  api.seen.length = 0
  expect(await apply([settings('one'), role])).toBe(
    ' > skipped rbac.authorization.k8s.io/v1.ClusterRole/system:test: no changes\n > skipped v1.ConfigMap/kube-system/settings: no changes\n',
  )
  expect(api.seen.filter((request) => !request.endsWith(' dry'))).toEqual([])
})

test('a change is shown as a difference', async () => {
  await apply([settings('one')])
  expect(await apply([settings('two')])).toBe(`\
 < configured v1.ConfigMap/kube-system/settings
--- a/v1.ConfigMap/kube-system/settings
+++ b/v1.ConfigMap/kube-system/settings
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  key: one
+  key: two
 kind: ConfigMap
 metadata:
   annotations:
`)
})

test('a dry run shows what would be created, changed and removed, and sends nothing but dry runs', async () => {
  await apply([settings('one'), role])
  api.seen.length = 0
  const io = textIo()
  expect(await previewManifests(io, api.client, [settings('two')], options)).toBe(true)
  expect(io.written.out).toContain(' < configured v1.ConfigMap/kube-system/settings\n')
  expect(io.written.out).toContain(' < Pruned rbac.authorization.k8s.io/v1.ClusterRole/system:test\n')
  expect(api.seen).toEqual([`PATCH ${path} dry`])
  expect(await previewManifests(textIo(), api.client, [settings('one'), role], options)).toBe(false)
})

test('what is no longer in the manifests is removed and leaves the inventory, unless --manifests-no-prune leaves it', async () => {
  await apply([settings('one'), role])
  await apply([settings('one')], { prune: false })
  expect([api.objects.has('/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Atest'), keys().length]).toEqual([true, 2])
  expect(await apply([settings('one')])).toContain(' < deleted rbac.authorization.k8s.io/v1.ClusterRole/system:test\n')
  expect([api.objects.has('/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Atest'), keys()]).toEqual([
    false,
    ['kube-system_settings__ConfigMap'],
  ])
})

test('what somebody removed comes back, and what they keep outside of the inventory is not removed', async () => {
  await apply([settings('one')])
  api.objects.delete(path)
  api.put({ ...settings('mine'), metadata: { name: 'mine', namespace: 'kube-system' } })
  expect(await apply([settings('one')])).toContain(' < created v1.ConfigMap/kube-system/settings\n')
  expect(api.objects.has('/api/v1/namespaces/kube-system/configmaps/mine')).toBe(true)
})

test('an inventory with keys of kinds that are gone and of namespaces of Kubernetes harms nobody', async () => {
  api.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } })
  api.put({
    ...settings(''),
    metadata: { name: 'talos-bootstrap-manifests-inventory', namespace: 'kube-system' },
    data: { '_kube-system__Namespace': '', 'default_x_example.org_Thing': '', nonsense: '' },
  })
  await apply([settings('one')])
  expect(api.objects.has('/api/v1/namespaces/kube-system')).toBe(true)
  expect(keys()).toEqual(['kube-system_settings__ConfigMap'])
})

const foreign = { [owner]: 'helm' }
test.each([
  ['MustMatch', undefined, 'it belongs to no inventory'],
  ['MustMatch', foreign, 'it belongs to the inventory "helm"'],
  ['AdoptIfNoInventory', foreign, 'it belongs to the inventory "helm"'],
] as const)('by %s an object with %j is not changed, and neither is any other', async (policy, annotations, reason) => {
  api.put(settings('theirs', annotations))
  await expect(apply([role, settings('ours')], { policy })).rejects.toThrow(`v1.ConfigMap/kube-system/settings: ${reason}`)
  expect(api.seen.filter((request) => !request.endsWith(' dry'))).toEqual([])
})

test.each([
  ['AdoptIfNoInventory', undefined],
  ['AdoptAll', foreign],
] as const)('by %s an object with %j is taken over', async (policy, annotations) => {
  api.put(settings('theirs', annotations))
  await apply([settings('ours')], { policy })
  expect(api.get(path)).toMatchObject({
    data: { key: 'ours' },
    metadata: { annotations: { [owner]: 'talos-bootstrap-manifests-inventory' } },
  })
})

test('a manifest that claims another inventory is refused whatever the policy', async () => {
  await expect(apply([settings('one', foreign)], { policy: 'AdoptAll' })).rejects.toThrow('its manifest names')
})

test('an object that cannot be changed in place is replaced only on request', async () => {
  await apply([settings('one')])
  const uid = api.get(path)?.metadata.uid
  api.state.reject = (method, at) =>
    method === 'PATCH' && at === path && api.get(path)?.metadata.uid === uid ? [422, 'field is immutable'] : undefined
  await expect(apply([settings('two')])).rejects.toThrow('--manifests-force')
  await apply([settings('two')], { force: true })
  expect(api.get(path)).toMatchObject({ data: { key: 'two' } })
  expect(api.get(path)?.metadata.uid).not.toBe(uid)
})

test('values of Secrets are never shown', async () => {
  const secret = (value: string): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'token', namespace: 'kube-system' },
    stringData: { token: value, same: 'word' },
  })
  const printed = (await apply([secret('first-word')])) + (await apply([secret('second-word')]))
  expect(printed).not.toContain('word')
  expect(printed).toContain('-  token: "*** (before)"\n+  token: "*** (after)"\n')
})
