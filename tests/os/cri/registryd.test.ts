import { expect, test } from 'bun:test'
import { systemClock } from '../../../src/cosi/clock.ts'
import { Store } from '../../../src/cosi/store.ts'
import type { Machine } from '../../../src/os/area.ts'
import { holdPort, serveRegistry } from '../../../src/os/cri/registryd.ts'
import { registrydService } from '../../../src/os/cri/services/registryd.ts'
import { LogRing } from '../../../src/supervise/log-ring.ts'
import { freePort } from '../../support/free-port.ts'

test('a layer is the tar headers and the very bytes of the files, whole or in part', async () => {
  const content = Uint8Array.from({ length: 700_000 }, (_, i) => i % 251)
  const digest = `sha256:${'c'.repeat(64)}`
  const server = holdPort(0)
  serveRegistry(server, {
    files: { readSlice: async (_, offset, length) => content.subarray(offset, offset + length) },
    layout: () => [
      { bytes: Uint8Array.of(1, 2, 3) },
      { bytes: new Uint8Array() },
      { file: '/x', offset: 0, length: content.length },
      { bytes: Uint8Array.of(9) },
    ],
    images: {
      images: [
        {
          reference: 'r.io/x:1',
          digest: `sha256:${'a'.repeat(64)}`,
          mediaType: 'application/vnd.oci.image.manifest.v1+json',
          manifest: '{}',
          config: { digest: `sha256:${'b'.repeat(64)}`, size: 2, text: '{}' },
          layers: [{ digest, size: content.length + 4, entries: [] }],
        },
      ],
    },
  })
  const url = `http://127.0.0.1:${server.port}/v2/x/blobs/${digest}?ns=r.io`
  const whole = new Uint8Array(await (await fetch(url)).arrayBuffer())
  expect(whole.length).toBe(content.length + 4)
  expect(Buffer.compare(whole, Buffer.concat([Uint8Array.of(1, 2, 3), content, Uint8Array.of(9)]))).toBe(0)
  const part = await fetch(url, { headers: { range: 'bytes=2-300000' } })
  expect(part.status).toBe(206)
  expect(Buffer.compare(new Uint8Array(await part.arrayBuffer()), whole.subarray(2, 300_001))).toBe(0)
  expect((await fetch(`http://127.0.0.1:${server.port}/v2/y/manifests/1`)).status).toBe(404)
  await server.close()
})

test('images of a cache are served to who names their registry, and nothing outside of it', async () => {
  const manifest = JSON.stringify({ schemaVersion: 2, mediaType: 'application/vnd.oci.image.manifest.v1+json' })
  const digest = `sha256:${'d'.repeat(64)}`
  const held: Record<string, Uint8Array> = {
    '/cache/manifests/ghcr.io/org/tool/reference/v1': Buffer.from(manifest),
    [`/cache/blob/sha256-${'d'.repeat(64)}`]: new Uint8Array(600_000).fill(7),
    '/etc/passwd': Buffer.from('secret'),
  }
  let caches = ['/cache']
  const server = holdPort(0)
  serveRegistry(server, {
    files: { readSlice: async (path, offset, length) => held[path]!.subarray(offset, offset + length) },
    layout: () => [],
    images: { images: [] },
    caches: () => caches,
    sizeOf: (path) => held[path]?.length,
  })
  const ask = (path: string, method = 'GET') => fetch(`http://127.0.0.1:${server.port}/v2/${path}`, { method })
  const found = await ask('org/tool/manifests/v1?ns=ghcr.io')
  expect([await found.text(), found.headers.get('content-type')]).toEqual([manifest, 'application/vnd.oci.image.manifest.v1+json'])
  expect((await (await ask(`org/tool/blobs/${digest}?ns=ghcr.io`)).arrayBuffer()).byteLength).toBe(600_000)
  const head = await ask(`org/tool/blobs/${digest}?ns=ghcr.io`, 'HEAD')
  expect([head.status, head.headers.get('docker-content-digest')]).toEqual([200, digest])
  for (const path of ['org/tool/manifests/v1?ns=docker.io', 'org/tool/manifests/v2?ns=ghcr.io', 'x/blobs/%2e%2e%2f%2e%2e%2fetc%2fpasswd'])
    expect((await ask(path)).status).toBe(404)
  caches = []
  expect((await ask('org/tool/manifests/v1?ns=ghcr.io')).status).toBe(404)
  await server.close()
})

test('the port stays taken while nobody answers on it, and answers once somebody does again', async () => {
  const held = holdPort(0)
  const options = { files: { readSlice: async () => new Uint8Array() }, layout: () => [], images: { images: [] } }
  const ask = async () => (await fetch(`http://127.0.0.1:${held.port}/healthz`)).status
  const end = serveRegistry(held, options)
  expect(await ask()).toBe(200)
  end()
  expect(await ask()).toBe(503)
  expect(() => holdPort(held.port)).toThrow('in use')
  const endNext = serveRegistry(held, options)
  end()
  expect(await ask()).toBe(200)
  endNext()
  await held.close()
})

test('the service keeps its port between its runs', async () => {
  const port = await freePort()
  const store = new Store()
  const files = { readText: () => '{"images":[]}', lstatIfThere: () => undefined, readSlice: async () => new Uint8Array() }
  const definition = registrydService({ kernel: { files } as unknown as Machine['kernel'], store }, port)
  const output = new LogRing()
  const start = () =>
    definition.runner({ definition, store, output, clock: systemClock, signal: new AbortController().signal, note() {}, created() {} })
  const healthy = () => definition.health!.check(new AbortController().signal)
  for (let runs = 0; runs < 2; runs++) {
    const run = await start()
    await healthy()
    await run.kill('SIGTERM')
    expect(await run.exit).toMatchObject({ ok: true })
    await expect(healthy()).rejects.toThrow('status 503')
    expect(() => holdPort(port)).toThrow('in use')
  }
})
