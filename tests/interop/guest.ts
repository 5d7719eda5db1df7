/** An image archive with one small static program, as `docker save` of today writes them. */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { tarEnd, tarHeader, tarPadding } from '../../src/oci/tar.ts'

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

/** An OCI layout in a tar: an image of that name that holds the program as /guest. */
export function guestArchive(program: string, name: string): Uint8Array {
  const layer = tar([{ path: 'guest', bytes: readFileSync(program), mode: 0o755 }])
  const config = json({
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { Entrypoint: ['/guest'], Cmd: ['echo'], Env: ['GREETING=hello', 'PATH=/'], WorkingDir: '/' },
    rootfs: { type: 'layers', diff_ids: [`sha256:${digestOf(layer)}`] },
  })
  const manifest = json({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: describe('application/vnd.oci.image.config.v1+json', config),
    layers: [describe('application/vnd.oci.image.layer.v1.tar', layer)],
  })
  const index = json({
    schemaVersion: 2,
    manifests: [{ ...describe('application/vnd.oci.image.manifest.v1+json', manifest), annotations: { 'io.containerd.image.name': name } }],
  })
  return tar([
    { path: 'oci-layout', bytes: json({ imageLayoutVersion: '1.0.0' }) },
    { path: 'index.json', bytes: index },
    ...[layer, config, manifest].map((bytes) => ({ path: join('blobs/sha256', digestOf(bytes)), bytes })),
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
    new Uint8Array(tarPadding(bytes.length)),
  ])
  return Buffer.concat([...parts, tarEnd])
}
