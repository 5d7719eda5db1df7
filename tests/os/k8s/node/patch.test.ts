import { expect, test } from 'bun:test'
import type { KubeObject } from '../../../../src/kube/object.ts'
import { configNodeAnnotations, configNodeLabels, configNodeTaints } from '../../../../src/os/k8s/controllers/node/node-specs.ts'
import { nodePatch } from '../../../../src/os/k8s/node/patch.ts'
import { NodeAnnotationSpec, NodeLabelSpec, NodeTaintSpec } from '../../../../src/os/k8s/resources/node.ts'
import { ExtensionStatus } from '../../../../src/os/runtime/resources/extension-status.ts'
import { controlPlane, machineWith, worker } from '../machine.ts'

const node = (metadata: Record<string, unknown>, spec: Record<string, unknown> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n', resourceVersion: '7', ...metadata },
  spec,
})
const nothing = { labels: {}, annotations: {}, taints: [], cordoned: false }

test('a node that is as desired is left alone', () => {
  expect(nodePatch(node({ labels: { a: '1' } }), { ...nothing, labels: { a: '1' } })).toBeUndefined()
})

test('labels are put and remembered, and only those are ever taken away', () => {
  expect(nodePatch(node({ labels: { foreign: 'x' } }), { ...nothing, labels: { mine: '1', foreign: 'y' } })).toEqual({
    metadata: { resourceVersion: '7', labels: { mine: '1' }, annotations: { 'talos.dev/owned-labels': '["mine"]' } },
  })
  const owned = node({ labels: { mine: '1', foreign: 'x' }, annotations: { 'talos.dev/owned-labels': '["mine"]' } })
  expect(nodePatch(owned, nothing)).toEqual({
    metadata: { resourceVersion: '7', labels: { mine: null }, annotations: { 'talos.dev/owned-labels': null } },
  })
})

test('taints are put beside those of others', () => {
  const foreign = { key: 'other', effect: 'NoExecute' }
  const patch = nodePatch(node({}, { taints: [foreign] }), { ...nothing, taints: [{ key: 'mine', value: 'v', effect: 'NoSchedule' }] })
  expect(patch).toEqual({
    metadata: { resourceVersion: '7', annotations: { 'talos.dev/owned-taints': '["mine"]' } },
    spec: { taints: [foreign, { key: 'mine', value: 'v', effect: 'NoSchedule' }] },
  })
})

test('a taint that the kubelet registered with is owned, goes when it is no longer desired, and comes back', () => {
  const role = { key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }
  const desired = { ...nothing, taints: [{ ...role, value: '' }] }
  const foreign = { key: 'other', effect: 'NoExecute' }
  expect(nodePatch(node({}, { taints: [role, foreign] }), desired)).toEqual({
    metadata: { resourceVersion: '7', annotations: { 'talos.dev/owned-taints': `["${role.key}"]` } },
  })
  const owned = { annotations: { 'talos.dev/owned-taints': `["${role.key}"]` } }
  expect(nodePatch(node(owned, { taints: [role, foreign] }), desired)).toBeUndefined()
  expect(nodePatch(node(owned, { taints: [role, foreign] }), nothing)).toEqual({
    metadata: { resourceVersion: '7', annotations: { 'talos.dev/owned-taints': null } },
    spec: { taints: [foreign] },
  })
  expect(nodePatch(node({}, { taints: [foreign] }), desired)).toMatchObject({ spec: { taints: [foreign, role] } })
})

test('a taint of the same key with another effect or value stays its owner’s', () => {
  const theirs = { key: 'mine', value: 'theirs', effect: 'NoSchedule' }
  expect(
    nodePatch(node({}, { taints: [theirs] }), { ...nothing, taints: [{ key: 'mine', value: 'v', effect: 'NoSchedule' }] }),
  ).toBeUndefined()
  expect(
    nodePatch(node({}, { taints: [theirs] }), { ...nothing, taints: [{ key: 'mine', value: 'theirs', effect: 'NoExecute' }] }),
  ).toBeUndefined()
})

test('a node is cordoned and uncordoned by us only when it was we', () => {
  expect(nodePatch(node({}), { ...nothing, cordoned: true })).toMatchObject({
    spec: { unschedulable: true },
    metadata: { annotations: { 'talos.dev/cordoned': 'true' } },
  })
  expect(nodePatch(node({}, { unschedulable: true }), nothing)).toBeUndefined()
  expect(nodePatch(node({ annotations: { 'talos.dev/cordoned': 'true' } }, { unschedulable: true }), nothing)).toMatchObject({
    spec: { unschedulable: null },
    metadata: { annotations: { 'talos.dev/cordoned': null } },
  })
})

test('broken memory counts as none', () => {
  expect(nodePatch(node({ annotations: { 'talos.dev/owned-labels': '{' } }), nothing)).toMatchObject({
    metadata: { annotations: { 'talos.dev/owned-labels': null } },
  })
})

test('a control plane node has its role and takes no ordinary pods, unless it may', async () => {
  const desired = async (config: string) => {
    const { store, settled } = machineWith([configNodeLabels, configNodeTaints], config)
    await settled()
    return { labels: store.list(NodeLabelSpec).map(({ spec }) => spec), taints: store.list(NodeTaintSpec).map(({ spec }) => spec) }
  }
  const role = 'node-role.kubernetes.io/control-plane'
  expect(await desired(controlPlane())).toEqual({
    labels: [{ key: role, value: '' }],
    taints: [{ key: role, effect: 'NoSchedule', value: '' }],
  })
  expect((await desired(controlPlane('', 'allowSchedulingOnControlPlanes: true'))).taints).toEqual([])
  expect(await desired(worker('nodeLabels: {zone: a}\nnodeTaints: {gpu: "yes:NoSchedule", old: NoExecute}'))).toEqual({
    labels: [{ key: 'zone', value: 'a' }],
    taints: [
      { key: 'gpu', effect: 'NoSchedule', value: 'yes' },
      { key: 'old', effect: 'NoExecute', value: '' },
    ],
  })
})

test('the extensions of the image are labels, or annotations where a version cannot be a label', async () => {
  const { store, settled } = machineWith([configNodeLabels, configNodeAnnotations], worker(''))
  const extension = (name: string, version: string) => ({
    image: '0.sqsh',
    metadata: { name, version, author: '', description: '', compatibility: { talos: { version: '' } } },
  })
  store.put(ExtensionStatus, '0', extension('agent', '7.2'))
  store.put(ExtensionStatus, '1', extension('tools', '1.0+debian'))
  await settled()
  expect(store.list(NodeLabelSpec).map(({ spec }) => spec)).toEqual([{ key: 'extensions.talos.dev/agent', value: '7.2' }])
  expect(store.list(NodeAnnotationSpec).map(({ spec }) => spec)).toEqual([{ key: 'extensions.talos.dev/tools', value: '1.0+debian' }])
})
