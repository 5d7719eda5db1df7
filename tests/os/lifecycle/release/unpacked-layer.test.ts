import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import * as files from '../../../../src/linux/fs/files.ts'
import { archiveFiles, type Reading } from '../../../../src/os/lifecycle/release/installer-image.ts'
import { openRelease } from '../../../../src/os/lifecycle/release/release.ts'
import { forgetUnpacked } from '../../../../src/os/lifecycle/release/unpacked-layer.ts'
import { imageLayout, installed, type Layer, releaseFiles, signingKey, tarOf } from './installer.ts'

const key = signingKey()
const release = releaseFiles('v1.13.1', key)
const none = new Map<string, Uint8Array>()
const oci = 'application/vnd.oci.image.layer.v1.tar'
const amd64 = { os: 'linux', architecture: 'amd64' }

let folder: string
let kernel: Reading

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ichor-layers-'))
  const below = (path: string) => (path.startsWith('/run/') ? join(folder, path) : path)
  kernel = {
    files: {
      ...files,
      openWrite: (path, options) => files.openWrite(below(path), options),
      openRead: (path, options) => files.openRead(below(path), options),
      exists: (path) => files.exists(below(path)),
      removeFile: (path) => files.removeFile(below(path)),
      mkdirAll: (path, options) => files.mkdirAll(below(path), options),
      list: (path) => files.list(below(path)),
      move: (from, to) => files.move(below(from), below(to)),
      lstatIfThere: (path) => files.lstatIfThere(below(path)),
      readText: () => 'MemTotal: 16384 kB\n',
    },
  }
})
afterEach(() => rmSync(folder, { recursive: true }))

const layerOf = (content: ReadonlyMap<string, Uint8Array>, mediaType = oci, pack = (tar: Buffer) => tar): Layer => ({
  files: content,
  mediaType,
  pack,
})
const gzipped = (content: ReadonlyMap<string, Uint8Array>) => layerOf(content, `${oci}+gzip`, (tar) => gzipSync(tar))

async function filesOf(layout: ReadonlyMap<string, Uint8Array>) {
  const path = join(folder, 'archive.tar')
  writeFileSync(path, tarOf(layout))
  return archiveFiles(kernel, path, statSync(path).size, 'a test', 'amd64')
}

const opened = async (...images: Parameters<typeof imageLayout>[0]) =>
  openRelease(await filesOf(imageLayout(images)), key.publicKey, 'amd64')
const text = async (parts: AsyncIterable<Uint8Array>) => Buffer.concat(await Array.fromAsync(parts)).toString()
const unpacked = () => {
  const path = join(folder, 'run/ichor/unpacked')
  return existsSync(path) ? readdirSync(path) : []
}

describe('a release is read from layers', () => {
  test.each([
    ['gzip', `${oci}+gzip`, (tar: Buffer) => gzipSync(tar)],
    ['gzip of Docker', 'application/vnd.docker.image.rootfs.diff.tar.gzip', (tar: Buffer) => gzipSync(tar)],
    ['zstd', `${oci}+zstd`, (tar: Buffer) => zstdCompressSync(tar)],
    ['plain ones of Docker', 'application/vnd.docker.image.rootfs.diff.tar', (tar: Buffer) => tar],
  ])('%s', async (_, mediaType, pack) => {
    const found = await opened({ layers: [layerOf(installed(release), mediaType, pack)], platform: amd64 })
    expect(await text(found.open('root.sqsh'))).toBe(String(release.get('root.sqsh')))
  })

  test('of several images, that for this machine', async () => {
    const other = releaseFiles('v1.13.2', key, { arch: 'arm64' })
    const found = await opened(
      { layers: [gzipped(installed(other, 'arm64'))], platform: { os: 'linux', architecture: 'arm64' } },
      { layers: [gzipped(none)], platform: { os: 'unknown', architecture: 'unknown' } },
      { layers: [gzipped(none)], platform: { os: 'windows', architecture: 'amd64' } },
      { layers: [gzipped(installed(release))], platform: amd64 },
    )
    expect(found.manifest.version).toBe('v1.13.1')
  })

  test('of which a later one replaces and hides files', async () => {
    const stale = new Map([...installed(release)].map(([path]) => [path, Buffer.from('stale')]))
    const more = new Map([...stale, ['usr/install/amd64/extra', Buffer.from('x')]])
    const hiding = new Map([...installed(release), ['usr/install/amd64/.wh.extra', Buffer.alloc(0)]])
    const found = await filesOf(imageLayout([{ layers: [gzipped(more), layerOf(hiding)], platform: amd64 }]))
    expect(found.size('extra')).toBeUndefined()
    expect(found.size('vmlinuz')).toBe(5000)
    const opaque = new Map([['usr/install/.wh..wh..opq', Buffer.alloc(0)]])
    const empty = await filesOf(imageLayout([{ layers: [gzipped(more), layerOf(opaque)], platform: amd64 }]))
    expect(empty.size('vmlinuz')).toBeUndefined()
  })
})

describe('what was unpacked', () => {
  const image = { layers: [gzipped(installed(release))], platform: amd64 }

  test('serves the next reading, gives way to another image, and is removed with the release', async () => {
    await opened(image)
    const first = unpacked()
    expect(first).toHaveLength(1)
    await opened(image)
    expect(unpacked()).toEqual(first)
    await opened({ ...image, layers: [gzipped(installed(releaseFiles('v1.13.2', key)))] })
    expect(unpacked()).toHaveLength(1)
    expect(unpacked()).not.toEqual(first)
    forgetUnpacked(kernel)
    expect(unpacked()).toEqual([])
  })

  test('is nothing when a layer cannot be unpacked', async () => {
    const failing: [Layer, string][] = [
      [layerOf(installed(release), `${oci}+gzip`, (tar) => gzipSync(tar).subarray(0, 500)), 'cannot be unpacked'],
      [layerOf(installed(release), `${oci}+zstd`, (tar) => gzipSync(tar)), 'cannot be unpacked'],
      [layerOf(installed(release), `${oci}+gzip`, () => gzipSync(Buffer.alloc(5 << 20))), 'an unpacked layer is larger than 4 MiB'],
      [layerOf(installed(release), `${oci}+xz`), `media type "${oci}+xz"`],
      [layerOf(installed(release), `${oci}+gzip+encrypted`), 'media type'],
    ]
    for (const [layer, why] of failing) {
      await expect(opened({ layers: [layer], platform: amd64 })).rejects.toThrow(why)
      expect(unpacked()).toEqual([])
    }
  })

  test('is nothing when the stored layer is another than that of its digest', async () => {
    const layout = imageLayout([image])
    for (const [name, bytes] of layout)
      if (bytes.length > 300 && name.startsWith('blobs/') && bytes[0] === 0x1f) layout.set(name, gzipSync('other'))
    await expect(filesOf(layout)).rejects.toThrow(/layer "sha256:[0-9a-f]{64}" is damaged; nothing was changed/)
    expect(unpacked()).toEqual([])
  })
})
