/** An image archive with one small static program, as `docker save` of today writes them. */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { tarPadding } from '../../src/wire/tar/format.ts'
import { tarEnd, tarHeader } from '../../src/wire/tar/write.ts'

const digestOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

/** Compiles the program; needs Go. */
export function buildGuest(path: string): void {
  const built = Bun.spawnSync(['go', 'build', '-trimpath', '-ldflags', '-s -w', '-o', path, './guest'], {
    cwd: import.meta.dir,
    env: { ...process.env, CGO_ENABLED: '0' },
    stderr: 'inherit',
  })
  if (built.exitCode !== 0) throw new Error('build the guest: go failed')
}

/** An image that holds the program as /guest. */
export interface GuestImage {
  readonly manifest: Uint8Array
  /** The layer, the configuration and the manifest, by digest. */
  readonly blobs: ReadonlyMap<string, Uint8Array>
}

/** Packs the program. */
export function guestImage(program: string, config: object = {}): GuestImage {
  const layer = tar([{ path: 'guest', bytes: readFileSync(program), mode: 0o755 }])
  const image = json({
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { Entrypoint: ['/guest'], Cmd: ['echo'], Env: ['GREETING=hello', 'PATH=/'], WorkingDir: '/', ...config },
    rootfs: { type: 'layers', diff_ids: [`sha256:${digestOf(layer)}`] },
  })
  const manifest = json({
    schemaVersion: 2,
    mediaType: manifestType,
    config: describe('application/vnd.oci.image.config.v1+json', image),
    layers: [describe('application/vnd.oci.image.layer.v1.tar', layer)],
  })
  return { manifest, blobs: new Map([layer, image, manifest].map((bytes) => [`sha256:${digestOf(bytes)}`, bytes])) }
}

const manifestType = 'application/vnd.oci.image.manifest.v1+json'

/** Answers a request to a registry that has these images, by the last part of their names. */
export function answerAsRegistry(images: Readonly<Record<string, GuestImage>>, request: Request): Response {
  const { pathname } = new URL(request.url)
  const [, name = '', kind, reference = ''] = /([^/]+)\/(manifests|blobs)\/([^/]+)$/.exec(pathname) ?? []
  if (pathname === '/v2/') return new Response('{}')
  const image = images[name]
  const bytes = kind === 'manifests' && !reference.startsWith('sha256:') ? image?.manifest : image?.blobs.get(reference)
  if (!image || !bytes) return new Response('not here', { status: 404 })
  const type = kind === 'manifests' ? manifestType : 'application/octet-stream'
  const headers = { 'content-type': type, 'docker-content-digest': `sha256:${digestOf(bytes)}`, 'content-length': String(bytes.length) }
  return new Response(request.method === 'HEAD' ? null : Buffer.from(bytes), { headers })
}

/** An OCI layout in a tar: an image of that name that holds the program as /guest. */
export function guestArchive(program: string, name: string): Uint8Array {
  const { manifest, blobs } = guestImage(program)
  const index = json({
    schemaVersion: 2,
    manifests: [{ ...describe(manifestType, manifest), annotations: { 'io.containerd.image.name': name } }],
  })
  return tar([
    { path: 'oci-layout', bytes: json({ imageLayoutVersion: '1.0.0' }) },
    { path: 'index.json', bytes: index },
    ...[...blobs].map(([digest, bytes]) => ({ path: join('blobs', digest.replace(':', '/')), bytes })),
  ])
}

function describe(mediaType: string, bytes: Uint8Array): object {
  return { mediaType, digest: `sha256:${digestOf(bytes)}`, size: bytes.length }
}

function json(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value))
}

function tar(files: readonly { path: string; bytes: Uint8Array; mode?: number }[]): Uint8Array {
  const parts = files.flatMap(({ path, bytes, mode = 0o644 }) => [
    tarHeader({ path, type: 'file', mode, size: bytes.length }),
    bytes,
    tarPadding(bytes.length),
  ])
  return Buffer.concat([...parts, tarEnd])
}
