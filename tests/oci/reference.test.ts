import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { formatReference, ImageReferenceError, parseReference } from '../../src/oci/reference.ts'

const sha = `sha256:${'0'.repeat(64)}`
test.each([
  ['busybox', 'docker.io/library/busybox:latest'],
  ['siderolabs/kubelet:v1', 'docker.io/siderolabs/kubelet:v1'],
  ['ghcr.io/siderolabs/kubelet:v1.36.3', 'ghcr.io/siderolabs/kubelet:v1.36.3'],
  ['localhost:5000/a/b', 'localhost:5000/a/b:latest'],
  [`registry.k8s.io/pause:3.10.1@${sha}`, `registry.k8s.io/pause:3.10.1@${sha}`],
])('%s in full is %s', (short, full) => {
  expect(formatReference(parseReference(short))).toBe(full)
  expect(formatReference(parseReference(full))).toBe(full)
})

test.each(['', 'UPPER', 'a:', 'a@b', 'a//b', '../a', 'a:b:c', 'x'.repeat(2000)])('%p is invalid', (text) => {
  expect(() => parseReference(text)).toThrow(ImageReferenceError)
})

test('any input parses or is refused with a typed error', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      try {
        parseReference(text)
      } catch (error) {
        expect(error).toBeInstanceOf(ImageReferenceError)
      }
    }),
  )
})
