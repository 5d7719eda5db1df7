/**
 * Container images that came with the machine: an ISO that carries them installs it, its images are on the disk before the first
 * start from there, and without the ISO and without any registry they are pulled. A disk image has them in a partition of its own.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { run } from '../../../rootfs/build/run.ts'
import { blobFile, manifestFile } from '../../../src/oci/image-cache.ts'
import type { MachineDisk } from '../../../src/programs/node-supervisor/machine/qemu-arguments.ts'
import { writeTar } from '../../../src/wire/tar/write.ts'
import { readIso } from '../../rootfs/read-iso.ts'
import { disk, forgetState, stateFolder, TestMachine, uefi } from '../machine.ts'
import { asAdministrator, oneNode } from '../one-node.ts'

const folder = stateFolder('image-cache')
const path = (name: string) => join(folder, name)
const minutes = 60_000
/** With capital letters, which ISO 9660 has none of. */
const image = { domain: 'registry.example:5000', repository: 'own/app', tag: 'v1.0-RC1' }
let machine: TestMachine

const admin = (...args: string[]) => asAdministrator(folder, machine.port, ...args)

const digestOf = (bytes: Uint8Array) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

/** A cache as `talosctl image cache-create --layout flat` makes it, of one image of a few mebibytes. */
async function writeCache(): Promise<void> {
  const put = (file: string, content: Uint8Array) => {
    mkdirSync(dirname(path(`cache/${file}`)), { recursive: true })
    writeFileSync(path(`cache/${file}`), content)
  }
  const data = randomBytes(8 << 20)
  const layer = Buffer.concat(
    await Array.fromAsync(writeTar([{ path: 'data', type: 'file', mode: 0o644, content: data, size: data.length }])),
  )
  const config = Buffer.from(
    JSON.stringify({ architecture: 'amd64', os: 'linux', config: {}, rootfs: { type: 'layers', diff_ids: [digestOf(layer)] } }),
  )
  const described = (mediaType: string, bytes: Uint8Array) => ({ mediaType, digest: digestOf(bytes), size: bytes.length })
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: described('application/vnd.oci.image.config.v1+json', config),
      layers: [described('application/vnd.oci.image.layer.v1.tar', layer)],
    }),
  )
  for (const content of [layer, config]) put(blobFile(digestOf(content)), content)
  for (const name of [image.tag, digestOf(manifest)]) put(manifestFile(image.domain, image.repository, name), manifest)
}

beforeAll(async () => {
  await writeCache()
  const args = ['--fast', '--only', 'iso,disk', '--output', folder, '--image-cache', path('cache')]
  await run([process.execPath, join(import.meta.dir, '../../../rootfs/image.ts'), ...args])
}, 60 * minutes)
afterAll(async () => {
  await machine?.unplug()
  forgetState(folder)
})

async function powerOn(on: MachineDisk, cdrom?: string): Promise<void> {
  console.log(`console: ${path('console.log')}`)
  machine = await TestMachine.start({ console: path('console.log'), cdrom, disks: [on], firmware: uefi(folder), memory: 2304 })
}

/** Without a registry the machine pulls the image from what it has. */
async function pulls(): Promise<void> {
  const reference = `${image.domain}/${image.repository}:${image.tag}`
  await machine.outputs(() => admin('image', 'pull', '--namespace', 'system', reference), /(?:)/, 20 * minutes)
  expect((await admin('image', 'list', '--namespace', 'system')).stdout).toContain(reference)
  await machine.outputs(() => admin('mounts'), /\/system\/imagecache\/disk/, 5 * minutes)
}

test(
  'the ISO has the images',
  () => {
    const { files } = readIso(readFileSync(path('ichor-amd64.iso')))
    const file = manifestFile(image.domain, image.repository, image.tag)
    expect(files.get(`imagecache/${file}`)).toEqual(readFileSync(path(`cache/${file}`)))
  },
  minutes,
)

test(
  'an installation copies them to the volume of the configuration before it restarts',
  async () => {
    writeFileSync(path('patch.yaml'), 'machine: {features: {imageCache: {localEnabled: true}}}\n')
    await oneNode(folder, '--install-disk', '/dev/vda', '--config-patch', `@${path('patch.yaml')}`)
    writeFileSync(
      path('controlplane.yaml'),
      `${readFileSync(path('controlplane.yaml'), 'utf8')}\n---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: IMAGECACHE\n`,
    )
    await powerOn(disk(path('disk.img'), 8 * 1024), path('ichor-amd64.iso'))
    await machine.shows(/maintenance: waiting for a machine configuration/, 20 * minutes)
    await machine.takes(path('controlplane.yaml'), 20 * minutes)
    await machine.shows(/image cache copied/, 60 * minutes)
    await machine.shows(/sequence=install phase=stopEverything /, 15 * minutes)
    await machine.off(15 * minutes)
  },
  140 * minutes,
)

test(
  'without the ISO and without a registry they are pulled from the disk',
  async () => {
    await powerOn(disk(path('disk.img'), 8 * 1024))
    await machine.shows(/machine configuration found.*source=state/, 20 * minutes)
    await machine.outputs(() => admin('get', 'volumestatus', 'IMAGECACHE'), /partition\s+ready/, 20 * minutes)
    const cache = await machine.outputs(() => admin('get', 'imagecacheconfig', '-o', 'yaml'), /status: ready/, 20 * minutes)
    expect(cache).toContain('copyStatus: skipped')
    expect(cache).toContain('- /system/imagecache/disk')
    await pulls()
    await machine.unplug()
  },
  90 * minutes,
)

test(
  'a disk image has them in a partition of its own, without a document for the volume',
  async () => {
    const config = { machine: { features: { imageCache: { localEnabled: true } } } }
    await oneNode(folder, '--install-disk', '/dev/vda', '--config-patch', JSON.stringify(config))
    await powerOn({ file: path('ichor-amd64.qcow2'), format: 'qcow2', bus: 'virtio' })
    await machine.shows(/addresses=10\.0\.2\.15 port=50000/, 20 * minutes)
    await machine.takes(path('controlplane.yaml'), 20 * minutes)
    await machine.outputs(() => admin('get', 'imagecacheconfig', '-o', 'yaml'), /status: ready/, 30 * minutes)
    await pulls()
  },
  110 * minutes,
)
