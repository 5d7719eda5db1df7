import { expect, test } from 'bun:test'
import { nodeMaySetLabel } from '../../../../src/os/k8s/node/restriction.ts'

test.each([
  ['zone', true],
  ['example.org/zone', true],
  ['topology.kubernetes.io/zone', true],
  ['node.kubernetes.io/exclude-from-external-load-balancers', true],
  ['x.kubelet.kubernetes.io/y', true],
  ['node-role.kubernetes.io/worker', false],
  ['kubernetes.io/other', false],
  ['foo.k8s.io/x', false],
  ['x.node-restriction.kubernetes.io/y', false],
])('a node may label itself %s: %p', (key, may) => {
  expect(nodeMaySetLabel(key)).toBe(may)
})
