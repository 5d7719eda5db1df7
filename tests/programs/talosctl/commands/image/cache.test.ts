import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash, X509Certificate } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseRegistryPath } from '../../../../../src/oci/image-cache.ts'
import { parseReference } from '../../../../../src/oci/reference.ts'
import { RemoteRegistry } from '../../../../../src/oci/remote-registry.ts'
import { serveCache } from '../../../../../src/programs/talosctl/image-cache/serve.ts'
import { run } from '../../../../../src/programs/talosctl/talosctl.ts'
import { textIo } from '../../peer.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-image-cache-'))
const digestOf = (bytes: Uint8Array | string) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const contents = new Map<string, string | Uint8Array>()
const requested: string[] = []
let server: ReturnType<typeof Bun.serve>
let host = ''
let signature = ''

beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const { pathname } = new URL(request.url)
      requested.push(pathname)
      const found = contents.get(pathname)
      return found === undefined ? new Response('', { status: 404 }) : new Response(found as string)
    },
  })
  host = `127.0.0.1:${server.port}`
  const put = (path: string, bytes: string | Uint8Array) => {
    contents.set(`/v2/tools/app/${path}`, bytes)
    return { digest: digestOf(bytes), size: bytes.length }
  }
  const blob = (bytes: string | Uint8Array) => put(`blobs/${digestOf(bytes)}`, bytes)
  const manifest = (value: object, tag = digestOf(JSON.stringify(value))) => put(`manifests/${tag}`, JSON.stringify(value))
  const child = (architecture: string) => ({
    ...manifest({ config: blob(`{"architecture":"${architecture}"}`), layers: [blob(new Uint8Array(300_000).fill(architecture.length))] }),
    platform: { os: 'linux', architecture },
  })
  const index = { manifests: [child('amd64'), child('arm64')] }
  const { digest } = manifest(index)
  manifest(index, 'v1')
  signature = `${digest.replace(':', '-')}.sig`
  manifest({ config: blob('{}'), layers: [blob('signed')] }, signature)
  const signed = contents.get(`/v2/tools/app/manifests/${signature}`) as string
  put(`manifests/${digestOf(signed)}`, signed)
})
afterAll(() => {
  server.stop(true)
  rmSync(folder, { recursive: true })
})

const talosctl = async (args: string[], stdin = '') => {
  const io = textIo({ stdin, env: { HOME: folder } })
  return { code: await run(['image', ...args], io), out: io.written.out, err: io.written.err }
}

/** The folder of a registry, whose port is written without a colon. */
const folderOf = (host: string) => host.replace(/:(\d+)$/, '_$1_')

describe('a cache of images', () => {
  test('as plain files holds what belongs to the platform, and its signature, and serves it as the registry did', async () => {
    const path = join(folder, 'flat')
    const layers = join(folder, 'layers')
    const made = await talosctl(
      ['cache-create', '--images', '-', '--image-cache-path', path, '--layout', 'flat', '--image-layer-cache-path', layers],
      `${host}/tools/app:v1\n`,
    )
    expect(made).toEqual({ code: 0, out: expect.stringMatching(/^127\.0\.0\.1:\d+\/tools\/app:v1: sha256:[0-9a-f]{64}\n$/), err: '' })
    const at = join(path, 'manifests', folderOf(host), 'tools/app')
    expect(readdirSync(join(at, 'reference')).sort()).toEqual([signature, 'v1'].sort())
    expect(readdirSync(join(at, 'digest'))).toHaveLength(3)
    expect(readdirSync(join(path, 'blob'))).toHaveLength(4)
    expect(readdirSync(layers)).toHaveLength(4)

    const cache = serveCache({ folder: path, hostname: '127.0.0.1', port: 0, domains: [host] })
    const registry = new RemoteRegistry({ hosts: () => [{ url: cache.url }] })
    const reference = parseReference(`${host}/tools/app:v1`)
    const top = await registry.manifest(reference)
    expect(top.mediaType).toBe('application/vnd.oci.image.index.v1+json')
    const [amd64, arm64] = JSON.parse(Buffer.from(top.bytes).toString()).manifests
    const one = await registry.manifest({ ...reference, digest: amd64.digest })
    const [layer] = JSON.parse(Buffer.from(one.bytes).toString()).layers
    expect((await registry.smallBlob(reference, layer.digest)).length).toBe(300_000)
    await expect(registry.manifest({ ...reference, digest: arm64.digest })).rejects.toMatchObject({ reason: 'missing' })
    const part = await fetch(`${cache.url}/v2/tools/app/blobs/${layer.digest}`, { headers: { range: 'bytes=10-19' } })
    expect([part.status, (await part.arrayBuffer()).byteLength]).toEqual([206, 10])
    expect((await fetch(`${cache.url}/v2/tools/app/manifests/v1`, { method: 'HEAD' })).headers.get('docker-content-digest')).toBe(
      top.digest,
    )
    await cache.close()
  })

  test('is not fetched again from where its layers are', async () => {
    requested.length = 0
    const path = join(folder, 'again')
    const made = await talosctl([
      ...['cache-create', '--images', `${host}/tools/app:v1`, '--image-cache-path', path, '--layout', 'flat'],
      ...['--image-layer-cache-path', join(folder, 'layers'), '--platform', 'linux/amd64', '--no-cosign-signatures'],
    ])
    expect(made.code).toBe(0)
    expect(requested.filter((one) => one.includes('/blobs/'))).toEqual([])
  })

  test('as one image is an OCI layout whose layer holds the files', async () => {
    const path = join(folder, 'oci')
    expect((await talosctl(['cache-create', '--images', `${host}/tools/app:v1`, '--image-cache-path', path])).code).toBe(0)
    expect(readdirSync(path).sort()).toEqual(['blobs', 'index.json', 'oci-layout'])
    const blob = (digest: string) => join(path, 'blobs/sha256', digest.slice('sha256:'.length))
    const [{ digest }] = JSON.parse(readFileSync(join(path, 'index.json'), 'utf8')).manifests
    const { layers } = JSON.parse(readFileSync(blob(digest), 'utf8'))
    expect(digestOf(readFileSync(blob(layers[0].digest)))).toBe(layers[0].digest)
    const listed = Bun.spawnSync(['tar', 'tf', blob(layers[0].digest)]).stdout.toString()
    expect(listed).toContain(`manifests/${folderOf(host)}/tools/app/reference/v1\n`)
    expect(listed.match(/^blob\/sha256-/gm)).toHaveLength(4)
  })

  test('does not take the place of another, and reports what is missing or wrong', async () => {
    const path = join(folder, 'oci')
    const there = await talosctl(['cache-create', '--images', `${host}/tools/app:v1`, '--image-cache-path', path])
    expect(there).toMatchObject({ code: 1, err: `"${path}" is there already: name another folder, or use --force\n` })
    const missing = await talosctl(['cache-create', '--images', `${host}/tools/none:v1`, '--image-cache-path', join(folder, 'none')])
    expect(missing).toMatchObject({ code: 1, err: expect.stringContaining('not found') })
    const platform = [
      'cache-create',
      '--images',
      `${host}/tools/app:v1`,
      '--image-cache-path',
      join(folder, 'x'),
      '--platform',
      'linux/riscv64',
    ]
    expect((await talosctl(platform)).err).toContain('has nothing for linux/riscv64')
    expect((await talosctl(['cache-serve', '--image-cache-path', path])).err).toContain('--layout flat')
    expect((await talosctl(['cache-create', '--images', 'Not An Image', '--image-cache-path', path, '--force'])).code).toBe(1)
    expect(existsSync(path)).toBe(true)
  })

  test('can be served with a certificate of its own', async () => {
    const [ca, crt, key] = ['ca.crt', 'tls.crt', 'tls.key'].map((name) => join(folder, name)) as [string, string, string]
    const files = ['--tls-ca-file', ca, '--tls-cert-file', crt, '--tls-key-file', key]
    expect(await talosctl(['cache-cert-gen', '--advertised-address', '127.0.0.1', ...files])).toEqual({ code: 0, out: '', err: '' })
    expect(new X509Certificate(readFileSync(crt)).checkIP('127.0.0.1')).toBe('127.0.0.1')
    expect(statSync(key).mode & 0o777).toBe(0o600)
    const tls = { cert: readFileSync(crt, 'utf8'), key: readFileSync(key, 'utf8') }
    const cache = serveCache({ folder: join(folder, 'flat'), hostname: '127.0.0.1', port: 0, domains: [host], tls })
    const registry = new RemoteRegistry({ hosts: () => [{ url: cache.url, tls: { ca: readFileSync(ca, 'utf8') } }] })
    expect((await registry.manifest(parseReference(`${host}/tools/app:v1`))).digest).toStartWith('sha256:')
    await cache.close()
    expect((await talosctl(['cache-cert-gen', ...files])).err).toContain('--advertised-address')
  })
})

test.each([
  ['/v2/a/b/manifests/v1?ns=r.io', { repository: 'a/b', kind: 'manifests', reference: 'v1', domain: 'r.io' }],
  [`/v2/a/blobs/sha256:${'0'.repeat(64)}`, { repository: 'a', kind: 'blobs', reference: `sha256:${'0'.repeat(64)}` }],
  ['/v2/a/../../etc/manifests/v1', undefined],
  ['/v2/%2e%2e/manifests/v1', undefined],
  ['/v2/a/manifests/..', undefined],
  ['/v2/a/blobs/passwd', undefined],
  ['/v2/a/manifests/v1?ns=../../x', undefined],
  ['/v2/a/uploads/v1', undefined],
])('a request for %s', (url, wanted) => expect(parseRegistryPath(url)).toEqual(wanted as never))
