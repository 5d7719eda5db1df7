import { expect, test } from 'bun:test'
import { KubeError } from '../../src/kube/errors.ts'
import { describeObject, parseManifest } from '../../src/kube/object.ts'

test('parses every document, expands lists, skips empty documents', () => {
  const objects = parseManifest(
    `---
# only a comment
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: kube-system}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: b}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: c}}
`,
    'x.yaml',
  )
  expect(objects.map(describeObject)).toEqual(['ConfigMap kube-system/a', 'Secret b', 'Deployment c'])
})

test.each([
  ['hello', 'manifest "m": document 1: is not an object'],
  ['kind: A', 'manifest "m": document 1: apiVersion is missing'],
  ['apiVersion: v1\nkind: A', 'manifest "m": document 1: A has no metadata.name'],
  ['apiVersion: v1\nkind: A\nmetadata: {name: x}\n---\n{', undefined],
])('%p is refused', (text, message) => {
  expect(() => parseManifest(text, 'm')).toThrow(KubeError)
  if (message) expect(() => parseManifest(text, 'm')).toThrow(message)
})

test('aliases that multiply are refused', () => {
  let bomb = 'a0: &a0 [x, x, x, x, x, x, x, x, x]\n'
  for (let i = 1; i < 9; i++)
    bomb += `a${i}: &a${i} [${Array(9)
      .fill(`*a${i - 1}`)
      .join(', ')}]\n`
  expect(() => parseManifest(bomb, 'm')).toThrow(KubeError)
})
