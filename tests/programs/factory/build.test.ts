import { afterAll, beforeAll, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { cpSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import * as files from '../../../src/linux/fs/files.ts'
import { checkManifest } from '../../../src/oci/image-manifest.ts'
import { parseGivenMeta } from '../../../src/os/block/meta/given.ts'
import { readMetaPartition } from '../../../src/os/block/meta/partition.ts'
import { archiveFiles } from '../../../src/os/lifecycle/release/installer-image.ts'
import { filesFor, openRelease, slotRelease, verifyFiles } from '../../../src/os/lifecycle/release/release.ts'
import { Builds } from '../../../src/programs/factory/build/builds.ts'
import { Overlay, stretchOf } from '../../../src/programs/factory/build/overlay.ts'
import { writeQcow2 } from '../../../src/programs/factory/formats/qcow2.ts'
import { withDiskFile } from '../../../src/programs/factory/release/disk-file.ts'
import { formatFat } from '../../../src/wire/fat/format.ts'
import { FatVolume } from '../../../src/wire/fat/volume.ts'
import { newTable, writeTable } from '../../../src/wire/gpt/table.ts'
import { partitionTypes } from '../../../src/wire/gpt/types.ts'
import { findTarPlaces } from '../../../src/wire/tar/read.ts'
import { stubOf } from '../../rootfs/program.ts'
import { readIso } from '../../rootfs/read-iso.ts'
import { line, publicLine, uki, version, writeProducts } from './built.ts'
import { newFolder, releaseKey, served } from './served.ts'

const folder = newFolder()
beforeAll(() => writeProducts(folder))
afterAll(() => rmSync(folder, { recursive: true }))

const guids = (digit: number) => `0b0e5d2e-5a3c-4a0a-9a1e-0c9f6d2e8b1${digit}`
const changed = `${line.replace(' panic=10', '')} ip=dhcp`
const wanted = { customization: { extraKernelArgs: ['ip=dhcp', '-panic'] } }
type Factory = ReturnType<typeof served>

async function post({ ask }: Factory, schematic: object): Promise<string> {
  return ((await (await ask('/schematics', { method: 'POST', body: JSON.stringify(schematic) })).json()) as { id: string }).id
}

/** The image of a schematic, and the reason where there is none. */
async function image(factory: Factory, name: string, schematic: object = wanted) {
  const answer = await factory.ask(`/image/${await post(factory, schematic)}/${version}/${name}`)
  const bytes = Buffer.from(await answer.arrayBuffer())
  return { status: answer.status, bytes, reason: answer.status === 200 ? '' : bytes.toString() }
}

/** Whether files are those that the manifest among them lists, and it is signed. */
function checkRelease(files: ReadonlyMap<string, Buffer>): void {
  const of = (name: string) => files.get(name) ?? Buffer.alloc(0)
  const manifest = checkManifest(of('manifest'), of('manifest.sig').toString(), publicLine(releaseKey))
  expect(manifest.files).toHaveLength(8)
  for (const { name, size, sha256 } of manifest.files)
    expect([name, of(name).length, new Bun.CryptoHasher('sha256').update(of(name)).digest('hex')]).toEqual([name, size, sha256])
  expect(of('cmdline').toString()).toBe(`${changed}\n`)
  expect(of('vmlinuz.efi').equals(uki(changed))).toBe(true)
}

test('the ISO of a schematic starts its command line with both firmwares, and installs it', async () => {
  await using factory = served(folder)
  const { status, bytes } = await image(factory, 'metal-amd64.iso')
  expect(status).toBe(200)
  const { files: found, boot } = readIso(bytes)
  const menu = found.get('boot/grub/grub.cfg')?.toString() ?? ''
  expect([...(menu.match(/^ {2}linux .*/gm) ?? [])]).toEqual(
    ['', ' talos.experimental.wipe=system'].map((end) => `  linux /usr/install/amd64/vmlinuz ${changed}${end}`),
  )
  const start = 'usr/install/amd64/'
  checkRelease(new Map([...found].filter(([path]) => path.startsWith(start)).map(([path, content]) => [path.slice(start.length), content])))
  const partition = bytes.subarray(boot.efi.start * 2048)
  const volume = await FatVolume.open(new Overlay(async (offset, length) => partition.subarray(offset, offset + length), partition.length))
  expect(Buffer.from(await volume.read(`EFI/Linux/ichor-${version}.efi`)).equals(uki(changed))).toBe(true)
}, 20_000)

test('the installer of a schematic is pulled by version and digest, and signed', async () => {
  await using factory = served(folder)
  const id = await post(factory, wanted)
  const get = async (path: string) => {
    const answer = await factory.ask(`/v2/installer/${id}/${path}`)
    expect(answer.status).toBe(200)
    const bytes = Buffer.from(await answer.arrayBuffer())
    expect(answer.headers.get('docker-content-digest')).toBe(`sha256:${new Bun.CryptoHasher('sha256').update(bytes).digest('hex')}`)
    return { bytes, type: answer.headers.get('content-type') }
  }
  const index = await get('manifests/latest')
  expect(index).toEqual(await get(`manifests/${version}`))
  expect(index.type).toBe('application/vnd.oci.image.index.v1+json')
  const [described] = JSON.parse(index.bytes.toString()).manifests
  expect(described.platform).toEqual({ architecture: 'amd64', os: 'linux' })
  const manifest = await get(`manifests/${described.digest}`)
  expect(manifest.type).toBe('application/vnd.oci.image.manifest.v1+json')
  const { config, layers } = JSON.parse(manifest.bytes.toString())
  const layer = await get(`blobs/${layers[0].digest}`)
  expect(layer.bytes).toHaveLength(layers[0].size)
  expect(JSON.parse((await get(`blobs/${config.digest}`)).bytes.toString()).rootfs.diff_ids).toEqual([layers[0].digest])
  const places = await findTarPlaces(async (offset, length) => layer.bytes.subarray(offset, offset + length), layer.bytes.length)
  const start = 'usr/install/amd64/'
  checkRelease(new Map(places.map(({ name, offset, size }) => [name.slice(start.length), layer.bytes.subarray(offset, offset + size)])))
  const part = await factory.ask(`/v2/installer/${id}/blobs/${layers[0].digest}`, { headers: { range: 'bytes=100-199' } })
  expect([part.status, Buffer.from(await part.arrayBuffer()).equals(layer.bytes.subarray(100, 200))]).toEqual([206, true])
})

test('values of META are a parameter of the ISO and of the script, and no part of the installer', async () => {
  await using factory = served(folder)
  const meta = [
    { key: 10, value: 'foo' },
    { key: 0xc, value: 'x'.repeat(400) },
  ]
  const { bytes } = await image(factory, 'metal-amd64.iso', { customization: { meta } })
  const menu = readIso(bytes).files.get('boot/grub/grub.cfg')?.toString() ?? ''
  const given = new Map(meta.map(({ key, value }) => [key, value]))
  expect(parseGivenMeta(menu)).toEqual(given)
  const script = await (await factory.ask(`/pxe/${await post(factory, { customization: { meta } })}/${version}/metal-amd64`)).text()
  expect(parseGivenMeta(script)).toEqual(given)
  const installer = await image(factory, 'installer-amd64.tar', { customization: { meta } })
  expect(installer.bytes.equals(readFileSync(join(folder, 'ichor-installer-amd64.tar')))).toBe(true)
  const wrong = await image(factory, 'metal-amd64.iso', { customization: { meta: [{ key: 10, value: 'a;b' }] } })
  expect(wrong).toMatchObject({ status: 400, reason: expect.stringContaining('the value of META tag 10 has a ";"') })
})

test('a disk has its arguments in the boot entry, and values of META in both copies', async () => {
  const own = newFolder()
  await writeProducts(own)
  const at = (name: string) => join(own, name)
  const size = 64 << 20
  const partitions = [
    { ...{ name: 'EFI', index: 1, attributes: 0n, type: partitionTypes.efi, guid: guids(1), first: 2048, last: 90_000 } },
    { ...{ name: 'META', index: 2, attributes: 0n, type: partitionTypes.linux, guid: guids(2), first: 90_112, last: 94_207 } },
  ]
  await withDiskFile(at('ichor-amd64.raw'), size, async (disk) => {
    const table = { ...newTable({ sectorSize: 512, size, diskGuid: guids(3) }), partitions }
    for (const step of writeTable(table, { protective: true })) for (const { offset, bytes } of step) await disk.write(offset, bytes)
    const efi = stretchOf(disk, 2048 * 512, 87_953 * 512)
    await formatFat(efi, { label: 'EFI', serial: 1, perCluster: 1 })
    const volume = await FatVolume.open(efi)
    await volume.mkdirAll('/loader/entries')
    await volume.create('/loader/entries/ichor-000001-a.conf', Buffer.from(`title x\noptions ${line} ichor.slot=a\n# release v1\n`))
  })
  await writeQcow2(at('ichor-amd64.qcow2'), at('ichor-amd64.raw'), 128 << 20)
  await using factory = served(own)
  const schematic = { customization: { ...wanted.customization, meta: [{ key: 10, value: 'foo' }] } }
  const { bytes } = await image(factory, 'metal-amd64.raw', schematic)
  const disk = new Overlay(async (offset, length) => bytes.subarray(offset, offset + length), bytes.length)
  const volume = await FatVolume.open(stretchOf(disk, 2048 * 512, 87_953 * 512))
  const entry = Buffer.from(await volume.read('/loader/entries/ichor-000001-a.conf')).toString()
  expect(entry).toBe(`title x\noptions ${changed} ichor.slot=a\n# release v1\n`)
  const { values } = await readMetaPartition(stretchOf(disk, 90_112 * 512, 4096 * 512))
  expect([...values].map(([tag, value]) => [tag, Buffer.from(value).toString()])).toEqual([[10, 'foo']])
  const qcow2 = await image(factory, 'metal-amd64.qcow2', schematic)
  expect([qcow2.status, qcow2.bytes.readUInt32BE(4), Number(qcow2.bytes.readBigUInt64BE(24))]).toEqual([200, 3, 10 * 2 ** 30])
  const given = await image(factory, 'metal-amd64.qcow2', {})
  expect(given.bytes.equals(readFileSync(at('ichor-amd64.qcow2')))).toBe(true)
  for (const [ending, decompress] of [
    ['zst', zstdDecompressSync],
    ['gz', gunzipSync],
  ] as const) {
    const compressed = await image(factory, `metal-amd64.raw.${ending}`, schematic)
    expect([compressed.status, Buffer.from(decompress(compressed.bytes)).equals(bytes)]).toEqual([200, true])
  }
  const vhd = await image(factory, 'metal-amd64.vhd', schematic)
  expect([vhd.bytes.subarray(0, bytes.length).equals(bytes), vhd.bytes.toString('latin1', bytes.length, bytes.length + 8)]).toEqual([
    true,
    'conectix',
  ])
  for (const name of ['metal-amd64.raw.tar.gz.zst', 'metal-amd64.iso.zst']) expect((await image(factory, name, schematic)).status).toBe(404)
  const signed = uki(line)
  signed.writeUInt32LE(16, 0x98 + 108)
  signed.writeUInt32LE(8, 0x98 + 112 + 4 * 8 + 4)
  writeFileSync(at('ichor-amd64.efi'), signed)
  expect((await image(factory, 'metal-amd64.raw')).reason).toContain('the signature for Secure Boot of the kernel image covers')
}, 20_000)

test('a machine takes the installer of a schematic when it trusts the key of the release, and refuses it otherwise', async () => {
  await using factory = served(folder)
  const path = join(newFolder(), 'installer.tar')
  const { bytes } = await image(factory, 'installer-amd64.tar')
  writeFileSync(path, bytes)
  const opened = async (publicKey: string) =>
    openRelease(await archiveFiles({ files }, path, bytes.length, 'a test', 'amd64'), publicKey, 'amd64')
  const release = await opened(publicLine(releaseKey))
  await verifyFiles(release, filesFor('systemd-boot'))
  expect((await slotRelease(release)).commandLine).toBe(changed)
  const other = publicLine(generateKeyPairSync('ed25519').privateKey)
  await expect(opened(other)).rejects.toThrow('not signed with the key that this system trusts')
})

test.each([
  ['another image', 'node/ID/manifests/latest', 'image "node/', 404],
  ['another version', 'installer/ID/manifests/v1.2.3', 'version "v1.2.3" is not held here', 404],
  ['a digest of another image', `installer/ID/blobs/sha256:${'a'.repeat(64)}`, 'request it by its version first', 404],
  ['a digest that is none', 'installer/ID/blobs/x', 'must be a SHA-256', 400],
  ['an unknown schematic', `installer/${'a'.repeat(64)}/manifests/latest`, 'is not known here', 404],
])('the registry refuses %s', async (_, path, reason, status) => {
  await using factory = served(folder)
  const answer = await factory.ask(`/v2/${path.replace('ID', await post(factory, wanted))}`)
  expect([answer.status, await answer.text()]).toEqual([status, expect.stringContaining(reason)])
})

test('the kernel image alone needs no key, what is signed names the key that it lacks', async () => {
  const builds = new Builds()
  await using factory = served(folder, { workshop: { builds, signers: {} } })
  const { bytes } = await image(factory, 'metal-amd64-uki.efi')
  expect(bytes.equals(uki(changed))).toBe(true)
  for (const name of ['metal-amd64.iso', 'installer-amd64.tar'])
    expect(await image(factory, name)).toMatchObject({ status: 400, reason: expect.stringContaining('start the factory with --key') })
  builds.close()
})

test('another key than that of the release is refused', async () => {
  const workshop = { builds: new Builds(), signers: { key: generateKeyPairSync('ed25519').privateKey } }
  await using factory = served(folder, { workshop })
  expect((await image(factory, 'metal-amd64.iso')).reason).toBe('the release is signed with another key than that of --key\n')
  workshop.builds.close()
})

test('arguments are refused where a signature of the kernel image covers them', async () => {
  const own = newFolder()
  cpSync(folder, own, { recursive: true })
  await using factory = served(own)
  const signed = uki(line)
  signed.writeUInt32LE(16, 0x98 + 108)
  signed.writeUInt32LE(8, 0x98 + 112 + 4 * 8 + 4)
  writeFileSync(join(own, 'ichor-amd64.efi'), signed)
  expect(await image(factory, 'metal-amd64.iso')).toMatchObject({
    status: 400,
    reason: expect.stringContaining('the signature for Secure Boot of the kernel image covers'),
  })
  writeFileSync(join(own, 'ichor-amd64.efi'), stubOf(252))
  expect((await image(factory, 'metal-amd64-uki.efi')).reason).toContain('the program has no section ".cmdline"')
})

test('products of another build, or without room, are refused', async () => {
  const own = newFolder()
  cpSync(folder, own, { recursive: true })
  await using factory = served(own)
  const iso = readFileSync(join(own, 'ichor-amd64.iso'))
  const at = iso.indexOf('version v')
  writeFileSync(join(own, 'ichor-amd64.iso'), iso.fill('V', at, at + 1))
  expect((await image(factory, 'metal-amd64.iso')).reason).toContain('are of different builds')
  truncateSync(join(own, 'ichor-amd64.iso'), 5000)
  expect((await image(factory, 'metal-amd64.iso')).reason).toContain('no primary volume descriptor')
})
