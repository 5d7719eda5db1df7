import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import * as files from '../../../src/linux/fs/files.ts'
import { VolumeConfig } from '../../../src/os/block/resources/volume-config.ts'
import { VolumeMountRequest, VolumeMountStatus } from '../../../src/os/block/resources/volume-mount.ts'
import { VolumeStatus } from '../../../src/os/block/resources/volume-status.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { configImageCache } from '../../../src/os/cri/controllers/image-cache.ts'
import { type CopyFiles, copyImageCache, NoSpace } from '../../../src/os/cri/copy-image-cache.ts'
import { ImageCacheConfig } from '../../../src/os/cri/resources/image-cache-config.ts'
import { Service } from '../../../src/os/runtime/resources/service.ts'

const base = mkdtempSync(join(tmpdir(), 'ichor-image-cache-'))
afterAll(() => rmSync(base, { recursive: true }))
let count = 0

function folders() {
  const at = join(base, `${++count}`)
  const medium = join(at, 'iso')
  const disk = join(at, 'disk')
  mkdirSync(disk, { recursive: true })
  const put = (path: string, content: string) => {
    mkdirSync(dirname(join(medium, 'imagecache', path)), { recursive: true })
    writeFileSync(join(medium, 'imagecache', path), content)
  }
  put('blob/sha256-aa', 'layer')
  put('manifests/docker.io/library/a/reference/1', '{}')
  return { medium, disk, put, from: join(medium, 'imagecache') }
}

const { signal } = new AbortController()

test('files that are missing or of another size are copied, and nothing half-written stays', async () => {
  const { from, disk, put } = folders()
  expect(await copyImageCache(files, { from, to: disk, signal })).toEqual({ files: 2, bytes: 7 })
  expect(readFileSync(join(disk, 'manifests/docker.io/library/a/reference/1'), 'utf8')).toBe('{}')
  writeFileSync(join(disk, 'blob/sha256-aa'), 'lay')
  writeFileSync(join(disk, 'blob/sha256-aa.tmp'), 'left by a power cut')
  put('blob/sha256-bb', 'more')
  expect(await copyImageCache(files, { from, to: disk, signal })).toEqual({ files: 2, bytes: 9 })
  expect(readdirSync(join(disk, 'blob')).sort()).toEqual(['sha256-aa', 'sha256-bb'])
  expect(readFileSync(join(disk, 'blob/sha256-aa'), 'utf8')).toBe('layer')
  expect(await copyImageCache(files, { from, to: disk, signal })).toEqual({ files: 0, bytes: 0 })
})

test('what does not fit is refused before anything is written, and so is what is no file', async () => {
  const { from, disk } = folders()
  const full: CopyFiles = { ...files, statfs: (path) => ({ ...files.statfs(path), available: 4096 }) }
  const copy = copyImageCache(full, { from, to: disk, signal })
  await expect(copy).rejects.toThrow(NoSpace)
  await expect(copy).rejects.toThrow('do not fit into 4.0 KiB: give the VolumeConfig IMAGECACHE a larger maxSize')
  expect(readdirSync(disk)).toEqual([])
  symlinkSync('/etc/passwd', join(from, 'blob/link'))
  await expect(copyImageCache(files, { from, to: disk, signal })).rejects.toThrow('is neither a folder nor a file')
})

/** A machine whose volumes a test puts in place. */
async function machine({ mode = 'metal', yaml = 'machine: {features: {imageCache: {localEnabled: true}}}' } = {}) {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(configImageCache({ mode: mode as 'metal', files }))
  store.put(MachineConfig, 'v1alpha1', yaml)
  runtime.start()
  await runtime.settled()
  const volume = async (id: string, phase: 'missing' | 'waiting' | 'ready', target?: string) => {
    store.put(VolumeStatus, id, { phase, type: 'partition', location: id, partitionUUID: id })
    await runtime.settled()
    const request = store.get(VolumeMountRequest, id)?.spec
    if (target && request) store.put(VolumeMountStatus, id, { ...request, target })
    await runtime.settled()
  }
  const healthy = async () => {
    store.put(Service, 'registryd', { running: true, healthy: true, unknown: false })
    await runtime.settled()
  }
  const cache = () => store.get(ImageCacheConfig, 'image-cache')?.spec
  return { store, runtime, volume, healthy, cache }
}

test('without the feature, and in containers, there are no volumes and no roots', async () => {
  const off = { status: 'disabled', copyStatus: 'skipped', roots: [] }
  for (const node of [await machine({ yaml: 'machine: {}' }), await machine({ mode: 'container' })]) {
    expect(node.cache()).toEqual(off)
    expect(node.store.list(VolumeConfig)).toEqual([])
  }
})

test('images are served from the medium while they are copied, then from the disk first', async () => {
  const { medium, disk, from } = folders()
  const node = await machine()
  expect(node.cache()).toEqual({ status: 'preparing', copyStatus: 'pending', roots: [] })
  await node.volume('IMAGECACHE', 'waiting')
  await node.volume('IMAGECACHE-ISO', 'ready', medium)
  await node.healthy()
  expect(node.cache()).toEqual({ status: 'ready', copyStatus: 'skipped', roots: [from] })
  await node.volume('IMAGECACHE', 'ready', disk)
  expect(node.store.get(VolumeMountRequest, 'IMAGECACHE')?.spec).toMatchObject({ readOnly: false, secure: true })
  expect(node.store.get(VolumeMountRequest, 'IMAGECACHE-ISO')?.spec.readOnly).toBe(true)
  await node.store.until(ImageCacheConfig, 'image-cache', ({ spec }) => spec.copyStatus === 'ready')
  expect(node.cache()).toEqual({ status: 'ready', copyStatus: 'ready', roots: [disk, from] })
  expect(existsSync(join(disk, 'blob/sha256-aa'))).toBe(true)
})

test('without a medium the disk is read-only, and nothing is copied', async () => {
  const { disk, from } = folders()
  await copyImageCache(files, { from, to: disk, signal })
  const node = await machine()
  await node.volume('IMAGECACHE-ISO', 'missing')
  await node.volume('IMAGECACHE', 'ready', disk)
  expect(node.store.get(VolumeMountRequest, 'IMAGECACHE')?.spec.readOnly).toBe(true)
  expect(node.cache()).toEqual({ status: 'preparing', copyStatus: 'skipped', roots: [disk] })
  await node.healthy()
  expect(node.cache()).toEqual({ status: 'ready', copyStatus: 'skipped', roots: [disk] })
})

test('where neither volume has images the cache is disabled', async () => {
  const node = await machine()
  await node.volume('IMAGECACHE-ISO', 'missing')
  await node.volume('IMAGECACHE', 'missing')
  expect(node.cache()).toEqual({ status: 'disabled', copyStatus: 'skipped', roots: [] })
})

test('a copy that fails is not repeated until the next start', async () => {
  const { medium, disk, from } = folders()
  symlinkSync('/etc/passwd', join(from, 'blob/link'))
  const node = await machine()
  await node.volume('IMAGECACHE-ISO', 'ready', medium)
  await node.volume('IMAGECACHE', 'ready', disk)
  await node.store.until(ImageCacheConfig, 'image-cache', ({ spec }) => spec.copyStatus === 'unknown')
  expect(node.cache()?.roots).toEqual([from])
})
