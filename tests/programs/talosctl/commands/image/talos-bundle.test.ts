import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { RemoteRegistry } from '../../../../../src/oci/remote-registry.ts'
import { bundleImages, extensionImages, overlayImages } from '../../../../../src/programs/talosctl/image/bundle.ts'
import { tarPadding } from '../../../../../src/wire/tar/format.ts'
import { tarEnd, tarHeader } from '../../../../../src/wire/tar/write.ts'
import { talosctl } from '../../peer.ts'

const digest = (bytes: Uint8Array) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const layer = (path: string, text: string) => {
  const header = tarHeader({ path, type: 'file', mode: 0o644, size: text.length })
  return gzipSync(Buffer.concat([header, Buffer.from(text), tarPadding(text.length), tarEnd]))
}
const blobs = new Map<string, Uint8Array>()
const keep = (bytes: Uint8Array) => {
  blobs.set(digest(bytes), bytes)
  return digest(bytes)
}
const json = (value: unknown) => Buffer.from(JSON.stringify(value))

/** An image for two architectures whose last layer has a file. */
function image(path: string, text: string): Uint8Array {
  const gzip = 'application/vnd.oci.image.layer.v1.tar+gzip'
  const layers = [layer('other', ''), layer(path, text)].map((bytes) => ({ mediaType: gzip, digest: keep(bytes) }))
  const manifest = (architecture: string) => ({ platform: { architecture }, digest: keep(json({ layers, architecture })) })
  return json({ manifests: [manifest('arm64'), manifest('amd64')] })
}

const sha = `sha256:${'1'.repeat(64)}`
const tags = new Map([
  ['extensions', image('image-digests', `ghcr.io/siderolabs/gvisor:20260101@${sha}\nghcr.io/siderolabs/amazon-ena:2.8.9@${sha}\n`)],
  [
    'overlays',
    image('./overlays.yaml', `overlays:\n  - name: rpi\n    image: ghcr.io/siderolabs/sbc-raspberrypi:v0.1.9\n    digest: ${sha}\n`),
  ],
  ['empty', image('something', '')],
])

let server: ReturnType<typeof Bun.serve>
beforeAll(() => {
  server = Bun.serve({
    port: 0,
    fetch({ url }) {
      const [, name = '', kind = '', key = ''] =
        /\/v2\/siderolabs\/([^/]+)\/(manifests|blobs)\/(.+)$/.exec(decodeURIComponent(new URL(url).pathname)) ?? []
      const bytes = key.startsWith('sha256:') ? blobs.get(key) : kind === 'manifests' ? tags.get(name) : undefined
      return bytes ? new Response(bytes as Uint8Array<ArrayBuffer>) : new Response('', { status: 404 })
    },
  })
})
afterAll(() => server.stop(true))
const registry = () => new RemoteRegistry({ hosts: () => [{ url: `http://127.0.0.1:${server.port}` }] })

test('extensions and overlays are those that files in two images name', async () => {
  expect(await extensionImages(registry(), 'ghcr.io/siderolabs/extensions:v1.13.0')).toEqual([
    `ghcr.io/siderolabs/gvisor:20260101@${sha}`,
    `ghcr.io/siderolabs/amazon-ena:2.8.9@${sha}`,
  ])
  expect(await overlayImages(registry(), 'ghcr.io/siderolabs/overlays:v1.13.0')).toEqual([
    `ghcr.io/siderolabs/sbc-raspberrypi:v0.1.9@${sha}`,
  ])
  await expect(extensionImages(registry(), 'ghcr.io/siderolabs/empty:v1.13.0')).rejects.toThrow(
    'image siderolabs/empty has no file "image-digests"',
  )
})

test('the images of a release need no registry', async () => {
  const { code, stdout, stderr } = await talosctl([], ['image', 'talos-bundle', 'v1.12.3', '--extensions=false', '--overlays=false'])
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toBe(
    ['installer', 'installer-base', 'imager', 'talos', 'talosctl-all', 'overlays', 'extensions']
      .map((name) => `ghcr.io/siderolabs/${name}:v1.12.3\n`)
      .join(''),
  )
  expect(bundleImages('v1.11.0-alpha.0').talos).toBe('ghcr.io/siderolabs/talos:v1.11.0-alpha.0')
})

test.each(['1.12.0', 'v1.10.9', 'v1.14.0', 'v2.0.0', 'latest'])('tag %s is refused with what can be written', (tag) => {
  expect(() => bundleImages(tag)).toThrow(`tag "${tag}": `)
})
