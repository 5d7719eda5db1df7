import { expect, test } from 'bun:test'
import type { ImageTable } from '../../src/oci/image.ts'
import { holds, type RegistryAnswer, registryOf } from '../../src/oci/registry.ts'

const digest = (letter: string) => `sha256:${letter.repeat(64)}`
const mediaType = 'application/vnd.oci.image.manifest.v1+json'
const table: ImageTable = {
  images: [
    {
      reference: 'registry.k8s.io/kube-apiserver:v1.36.3',
      digest: digest('a'),
      mediaType,
      manifest: '{"schemaVersion":2}',
      config: { digest: digest('b'), size: 2, text: '{}' },
      layers: [{ digest: digest('c'), size: 1000, entries: [] }],
    },
    {
      reference: 'busybox:1',
      digest: digest('d'),
      mediaType,
      manifest: '{}',
      config: { digest: digest('e'), size: 2, text: '{}' },
      layers: [],
    },
  ],
}
const registry = registryOf(table)
const ask = (url: string, headers: Record<string, string> = {}, method = 'GET') =>
  registry.answer({ method, url, headers: { get: (name) => headers[name] ?? null } })
const text = (answer: RegistryAnswer) => (answer.body && 'text' in answer.body ? answer.body.text : undefined)

test('announces the registry protocol and reports healthy', () => {
  expect(ask('/v2/')).toEqual({ status: 200, headers: { 'content-type': 'application/json', 'content-length': '2' }, body: { text: '{}' } })
  expect(text(ask('/healthz'))).toBe('ok\n')
})

test('answers a manifest by tag and by digest, for its own host and when no host is named', () => {
  for (const url of [
    '/v2/kube-apiserver/manifests/v1.36.3?ns=registry.k8s.io',
    `/v2/kube-apiserver/manifests/${digest('a')}?ns=registry.k8s.io`,
    '/v2/kube-apiserver/manifests/v1.36.3',
  ]) {
    const answer = ask(url)
    expect(text(answer)).toBe('{"schemaVersion":2}')
    expect(answer.headers).toEqual({ 'content-type': mediaType, 'docker-content-digest': digest('a'), 'content-length': '19' })
  }
})

test('a short name lives under docker.io/library', () => {
  expect(ask('/v2/library/busybox/manifests/1?ns=docker.io').status).toBe(200)
})

test('the same name under another host, another tag or nothing is refused as the protocol specifies', () => {
  for (const url of [
    '/v2/kube-apiserver/manifests/v1.36.3?ns=example.org',
    '/v2/kube-apiserver/manifests/v1.36.4',
    '/v2/x/blobs/sha256:0',
  ]) {
    const answer = ask(url)
    expect(answer.status).toBe(404)
    expect(JSON.parse(text(answer) ?? '').errors[0].code).toMatch(/^(MANIFEST|BLOB)_UNKNOWN$/)
  }
  expect(JSON.parse(text(ask('/elsewhere')) ?? '').errors[0].code).toBe('NAME_UNKNOWN')
  expect(ask('/v2/%zz/blobs/x').status).toBe(404)
})

test('HEAD has the headers and no body', () => {
  const answer = ask(`/v2/kube-apiserver/blobs/${digest('c')}`, {}, 'HEAD')
  expect(answer.body).toBeUndefined()
  expect(answer.headers['content-length']).toBe('1000')
})

test('writing is refused', () => {
  expect(ask('/v2/x/blobs/uploads/', {}, 'POST').status).toBe(405)
})

test.each([
  ['bytes=0-9', 206, 0, 10],
  ['bytes=990-', 206, 990, 10],
  ['bytes=-5', 206, 995, 5],
  ['bytes=0-99999', 206, 0, 1000],
  ['bytes=0-1,5-6', 200, 0, 1000],
  ['lines=1-2', 200, 0, 1000],
])('range %s of a layer', (range, status, start, length) => {
  const answer = ask(`/v2/kube-apiserver/blobs/${digest('c')}`, { range })
  expect(answer.status).toBe(status)
  expect(answer.body).toMatchObject({ start, length })
  expect(answer.headers['content-length']).toBe(String(length))
})

test.each(['bytes=1000-', 'bytes=9-3', 'bytes=-0'])('range %s is unsatisfiable', (range) => {
  expect(ask(`/v2/kube-apiserver/blobs/${digest('c')}`, { range })).toMatchObject({
    status: 416,
    headers: { 'content-range': 'bytes */1000' },
  })
})

test('knows which references it contains', () => {
  expect(holds(table, 'registry.k8s.io/kube-apiserver:v1.36.3')).toBe(true)
  expect(holds(table, 'docker.io/library/busybox:1')).toBe(true)
  expect(holds(table, 'registry.k8s.io/kube-apiserver:v1.35.0')).toBe(false)
})
