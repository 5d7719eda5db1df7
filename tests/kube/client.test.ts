import { afterAll, beforeAll, expect, test } from 'bun:test'
import { core, kubeClient, pathOf } from '../../src/kube/client.ts'
import { isNotFound, KubeError } from '../../src/kube/errors.ts'
import { newCA, newCertificate, type PemPair } from '../../src/pki/certificate.ts'

const seen: { method: string; url: string; type: string | null; body: string }[] = []
let server: ReturnType<typeof Bun.serve>
beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const url = new URL(request.url)
      seen.push({
        method: request.method,
        url: url.pathname + url.search,
        type: request.headers.get('content-type'),
        body: await request.text(),
      })
      if (url.pathname === '/apis/example.org/v1')
        return Response.json({
          resources: [
            { name: 'things', kind: 'Thing', namespaced: true },
            { name: 'things/status', kind: 'Thing', namespaced: true },
          ],
        })
      if (url.searchParams.get('watch')) {
        const events = [
          { type: 'ADDED', object: { metadata: { name: 'a' } } },
          { type: 'BOOKMARK', object: { metadata: { resourceVersion: '9' } } },
          { type: 'ERROR', object: { code: 410, reason: 'Expired', message: 'too old' } },
        ]
        const text = events.map((event) => JSON.stringify(event)).join('\n')
        return new Response(
          new ReadableStream({
            start(controller) {
              for (const part of [text.slice(0, 20), text.slice(20, 90), text.slice(90)]) controller.enqueue(new TextEncoder().encode(part))
              controller.close()
            },
          }),
        )
      }
      if (url.pathname.endsWith('/secrets'))
        return Response.json({ metadata: { resourceVersion: '7' }, items: [{ metadata: { name: 's' } }] })
      if (url.pathname === '/readyz') return new Response('ok', { headers: { 'content-type': 'text/plain' } })
      if (url.pathname.endsWith('/gone'))
        return Response.json({ kind: 'Status', reason: 'NotFound', message: 'nodes "gone" not found' }, { status: 404 })
      if (url.pathname.endsWith('/slow')) await new Promise(() => {})
      if (url.pathname.endsWith('/broken')) return new Response('upstream fell over', { status: 502 })
      return Response.json({ metadata: { name: 'x' } })
    },
  })
})
afterAll(() => server.stop(true))
const client = () => kubeClient({ server: `http://127.0.0.1:${server.port}/`, ca: '' })

test('kinds become paths', () => {
  expect(pathOf(core.node, undefined, 'n1')).toBe('/api/v1/nodes/n1')
  expect(pathOf(core.deployment, 'kube-system', 'coredns')).toBe('/apis/apps/v1/namespaces/kube-system/deployments/coredns')
  expect(pathOf(core.pod)).toBe('/api/v1/pods')
})

test('unknown kinds are looked up once', async () => {
  const one = client()
  const before = seen.length
  const kind = await one.kind('example.org/v1', 'Thing')
  expect(kind).toEqual({ apiVersion: 'example.org/v1', kind: 'Thing', plural: 'things', namespaced: true })
  expect(await one.kind('example.org/v1', 'Thing')).toBe(kind)
  expect(seen.length).toBe(before + 1)
  await expect(one.kind('example.org/v1', 'Other')).rejects.toThrow('kind "Other" is not served in "example.org/v1"')
})

test('server-side apply sends its field manager', async () => {
  await client().apply(
    core.configMap,
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'y' } },
    { fieldManager: 'talos' },
  )
  expect(seen.at(-1)).toMatchObject({
    method: 'PATCH',
    url: '/api/v1/namespaces/y/configmaps/x?fieldManager=talos&force=true',
    type: 'application/apply-patch+yaml',
  })
})

test('items of a list know their kind', async () => {
  const { items, resourceVersion } = await client().list(core.secret, { namespace: 'a', labelSelector: 'x=y' })
  expect(items).toEqual([{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } }])
  expect(resourceVersion).toBe('7')
  expect(seen.at(-1)?.url).toBe('/api/v1/namespaces/a/secrets?labelSelector=x%3Dy')
})

test('a watch yields events however they are chunked and throws the error it ends with', async () => {
  const types: string[] = []
  const reading = (async () => {
    for await (const event of client().watch(core.node, { resourceVersion: '1' })) types.push(event.type)
  })()
  await expect(reading).rejects.toMatchObject({ status: 410, reason: 'Expired' })
  expect(types).toEqual(['ADDED', 'BOOKMARK'])
})

test('refusals carry the reason of the server', async () => {
  const error = await client()
    .get(core.node, 'gone')
    .catch((error) => error)
  expect(isNotFound(error)).toBe(true)
  expect(error.message).toEndWith('/api/v1/nodes/gone: nodes "gone" not found')
  await expect(client().get(core.node, 'broken')).rejects.toMatchObject({
    status: 502,
    message: expect.stringContaining('upstream fell over'),
  })
})

test('plain text is a valid response', async () => {
  expect(await client().request<string>('GET', '/readyz')).toBe('ok')
})

test('a timeout, a closed port and an abort all end a call', async () => {
  await expect(client().get(core.node, 'slow', undefined, { timeout: 20 })).rejects.toMatchObject({ reason: 'Timeout' })
  await expect(kubeClient({ server: 'http://127.0.0.1:1', ca: '' }).get(core.node, 'x')).rejects.toBeInstanceOf(KubeError)
  const abort = new AbortController()
  const call = client().get(core.node, 'slow', undefined, { signal: abort.signal })
  abort.abort(new Error('enough'))
  await expect(call).rejects.toThrow('enough')
})

test('server and client authenticate each other: another authority with the same name is refused on both sides', async () => {
  const subject = { organizations: ['kubernetes'] }
  const [ca, impostor] = [newCA({ subject, kind: 'ecdsa' }), newCA({ subject, kind: 'ecdsa' })]
  const made = (signer: PemPair, usage: 'serverAuth' | 'clientAuth') =>
    newCertificate({
      ca: signer,
      subject: { commonName: 'x', organizations: ['system:masters'] },
      ...(usage === 'serverAuth' && { sans: { ips: ['127.0.0.1'] } }),
      usage: [usage],
      lifetime: 60_000,
      kind: 'ecdsa',
    })
  const own = made(ca, 'serverAuth')
  const https = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    tls: { cert: own.crt, key: own.key, ca: ca.crt, requestCert: true, rejectUnauthorized: true },
    fetch: () => Response.json({ mutual: true }),
  })
  const request = (trusted: PemPair, { crt, key }: PemPair) =>
    kubeClient({ server: `https://127.0.0.1:${https.port}`, ca: trusted.crt, cert: crt, key }).request<unknown>('GET', '/')
  expect(await request(ca, made(ca, 'clientAuth'))).toEqual({ mutual: true })
  await expect(request(impostor, made(ca, 'clientAuth'))).rejects.toBeInstanceOf(KubeError)
  await expect(request(ca, made(impostor, 'clientAuth'))).rejects.toBeInstanceOf(KubeError)
  await https.stop(true)
})
