/** One version for several processors: each of its names leads to the release of one. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { installersOf, writeInstallerIndex } from '../../../rootfs/image/container/installer-archive.ts'
import * as files from '../../../src/linux/fs/files.ts'
import { archiveFiles } from '../../../src/os/lifecycle/release/installer-image.ts'
import { filesFor, openRelease, slotRelease, verifyFiles } from '../../../src/os/lifecycle/release/release.ts'
import { architectureOf } from '../../../src/programs/factory/releases.ts'
import { defaultSchematic } from '../../../src/programs/factory/schematic.ts'
import { readIsoFiles } from '../../../src/wire/iso9660/files.ts'
import { line, publicLine, uki, version, writeProducts } from './built.ts'
import { newFolder, releaseKey, served, writeRelease } from './served.ts'

const folder = newFolder()
beforeAll(async () => {
  await writeProducts(folder)
  await writeProducts(folder, uki(line), 'arm64')
})
afterAll(() => rmSync(folder, { recursive: true }))

const changed = `${line} ip=dhcp`

async function schematicOf({ ask }: ReturnType<typeof served>): Promise<string> {
  const body = JSON.stringify({ customization: { extraKernelArgs: ['ip=dhcp'] } })
  return ((await (await ask('/schematics', { method: 'POST', body })).json()) as { id: string }).id
}

test.each([
  ['metal-arm64.iso', 'arm64'],
  ['initramfs-arm64.xz', 'arm64'],
  ['kernel-x86_64', 'amd64'],
  ['installer-amd64.tar', 'amd64'],
  ['metal-i386', 'amd64'],
  ['constructor-arm64', 'arm64'],
  ['constructor', 'amd64'],
])('%s is for %s', (name, arch) => expect(architectureOf(name)).toBe(arch as 'amd64'))

test('the version is listed once, and its media are those of the architecture in their names', async () => {
  await using factory = served(folder)
  expect(await (await factory.ask('/versions')).json()).toEqual([version])
  const id = await schematicOf(factory)
  const answer = await factory.ask(`/image/${id}/${version}/metal-arm64.iso`)
  const bytes = Buffer.from(await answer.arrayBuffer())
  const found = await readIsoFiles(async (offset, length) => bytes.subarray(offset, offset + length), bytes.length)
  const content = (path: string) => {
    const { offset, size } = found.get(path) ?? { offset: 0, size: 0 }
    return bytes.subarray(offset, offset + size)
  }
  expect(answer.status).toBe(200)
  expect(found.has('boot/grub/grub.cfg')).toBe(false)
  expect(content('usr/install/arm64/cmdline').toString()).toBe(`${changed}\n`)
  expect(content('usr/install/arm64/vmlinuz.efi').equals(uki(changed))).toBe(true)
  const base = `${factory.url}/image/${id}/${version}`
  const script = `#!ipxe\nimgfree\nkernel ${base}/kernel-arm64 ${changed}\ninitrd ${base}/initramfs-arm64.xz\nboot\n`
  expect(await (await factory.ask(`/pxe/${id}/${version}/metal-arm64`)).text()).toBe(script)
  expect((await factory.ask(`/image/${id}/${version}/kernel-arm64`)).status).toBe(200)
  const appliance = await factory.ask(`/image/${id}/${version}/metal-arm64.ova`)
  expect([appliance.status, await appliance.text()]).toEqual([404, expect.stringContaining('"metal-arm64.ova" is not one of kernel-arm64')])
}, 20_000)

test('the installer is one index, of which a machine takes its own', async () => {
  await using factory = served(folder)
  const id = await schematicOf(factory)
  const get = async (path: string) => {
    const answer = await factory.ask(`/v2/installer/${id}/${path}`)
    expect([path, answer.status]).toEqual([path, 200])
    return JSON.parse(await answer.text())
  }
  const { manifests } = await get(`manifests/${version}`)
  expect(manifests.map(({ platform }: { platform: object }) => platform)).toEqual(
    ['amd64', 'arm64'].map((architecture) => ({ architecture, os: 'linux' })),
  )
  for (const { digest } of manifests) {
    const { config, layers } = await get(`manifests/${digest}`)
    expect((await get(`blobs/${config.digest}`)).rootfs.diff_ids).toEqual([layers[0].digest])
  }
}, 20_000)

test('an archive with all architectures installs each machine with its release', async () => {
  const path = join(folder, 'ichor-installer.tar')
  const installers = installersOf(folder, version)
  expect(installers.map(({ arch }) => arch)).toEqual(['amd64', 'arm64'])
  expect(installersOf(folder, 'v1.2.3')).toEqual([])
  await writeInstallerIndex(path, installers)
  for (const arch of ['amd64', 'arm64'] as const) {
    const image = await archiveFiles({ files }, path, statSync(path).size, 'a test', arch)
    const release = await openRelease(image, publicLine(releaseKey), arch)
    await verifyFiles(release, filesFor('systemd-boot'))
    expect((await slotRelease(release)).commandLine).toBe(line)
  }
})

test('a version that is held for another architecture only is refused with how to make it', async () => {
  const own = newFolder()
  writeRelease(own, version)
  await using factory = served(own)
  const answer = await factory.ask(`/image/${defaultSchematic.id}/${version}/kernel-arm64`)
  const reason = `version "${version}" is held here for amd64, not for arm64: make it with "mkimage.sh --arch arm64"\n`
  expect([answer.status, await answer.text()]).toEqual([404, reason])
})

test('the page offers the images of the architecture that was chosen', async () => {
  await using factory = served(folder)
  const text = await (await factory.ask(`/?schematic=${defaultSchematic.id}&version=${version}&arch=arm64`)).text()
  expect(text).toContain('<option selected>arm64</option>')
  expect(text).toContain('metal-arm64.iso')
  expect(text).not.toContain('metal-amd64.iso')
  expect(text).toContain(`/pxe/${defaultSchematic.id}/${version}/metal-arm64</pre>`)
})
