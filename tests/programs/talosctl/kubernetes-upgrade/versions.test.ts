import { expect, test } from 'bun:test'
import { serverAt } from '../../../../src/programs/talosctl/kubernetes-upgrade/access.ts'
import {
  checkPath,
  unsupportedBy,
  variantOf,
  versionFrom,
  versionOf,
  versionOfImage,
} from '../../../../src/programs/talosctl/kubernetes-upgrade/versions.ts'

test.each([
  ['registry.k8s.io/kube-apiserver:v1.36.3', '1.36.3', ''],
  ['localhost:5000/kube-apiserver:v1.35.4', '1.35.4', ''],
  ['localhost:5000/kube-apiserver', undefined, ''],
  ['ghcr.io/siderolabs/kubelet:v1.36.0-slim', '1.36.0', '-slim'],
  ['ghcr.io/siderolabs/kubelet:v1.36.0-rc.1-fat', '1.36.0-rc.1', '-fat'],
  [`registry.k8s.io/kube-proxy:v1.36.3@sha256:${'0'.repeat(64)}`, '1.36.3', ''],
])('%s is version %s', (image, version, variant) => {
  expect([versionOfImage(image)?.text, variantOf(image)]).toEqual([version, variant])
})

const checked = (from: string, to: string) => checkPath(versionOf(from)!, versionOf(to)!)

test.each([
  ['1.35.4', '1.36.3'],
  ['1.36.3', '1.36.3'],
  ['1.36.3', '1.36.1'],
])('an upgrade from %s to %s is possible', (from, to) => {
  expect(() => checked(from, to)).not.toThrow()
})

test.each([
  [
    '1.34.4',
    '1.36.3',
    'an upgrade from 1.34.4 to 1.36.3 is not possible, only within a minor version or to the next one: upgrade to 1.35 first',
  ],
  ['1.36.3', '1.35.4', 'an upgrade from 1.36.3 to 1.35.4 is not possible, only within a minor version or to the next one'],
])('one from %s to %s is not', (from, to, message) => {
  expect(() => checked(from, to)).toThrow(message)
})

test('a version is named with or without a v, and in full', () => {
  expect([versionFrom('--to', 'v1.36.3').text, versionFrom('--to', '1.36.3').text]).toEqual(['1.36.3', '1.36.3'])
  expect(() => versionFrom('--to', '1.36')).toThrow('--to "1.36": must be a version such as 1.36.3')
})

test.each([
  ['v1.13.100', '1.36.3', undefined],
  ['v1.13.100', '1.31.0', undefined],
  ['v1.13.100', '1.37.0', 'release v1.13.100 runs Kubernetes 1.31 to 1.36, not 1.37.0: upgrade the system first'],
  ['v1.13.100', '1.30.9', 'release v1.13.100 runs Kubernetes 1.31 to 1.36, not 1.30.9: upgrade the system first'],
  ['v1.99.0', '1.36.3', 'release v1.99.0 is not known to this client: use the client of that release'],
  ['', '1.36.3', 'release  is not known to this client: use the client of that release'],
])('release "%s" and Kubernetes %s', (tag, to, reason) => {
  expect(unsupportedBy(tag, versionOf(to)!)).toBe(reason)
})

test.each([
  ['10.0.0.1', 'https://10.0.0.1:6443'],
  ['https://kube.example.org', 'https://kube.example.org:6443'],
  ['kube.example.org:443', 'https://kube.example.org:443'],
  ['fd00::1', 'https://[fd00::1]:6443'],
  ['https://[fd00::1]:7443/', 'https://[fd00::1]:7443'],
])('--endpoint %s is %s', (endpoint, server) => {
  expect(serverAt(endpoint)).toBe(server)
})
