import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkManifest } from '../../../src/oci/image-manifest.ts'
import { Builds } from '../../../src/programs/factory/build/builds.ts'
import type { OfferedExtension } from '../../../src/programs/factory/extensions.ts'
import { parseTrust } from '../../../src/programs/factory/release/initramfs.ts'
import { architectures } from '../../../src/programs/factory/releases.ts'
import type { Signers } from '../../../src/programs/factory/remake/signers.ts'
import { hashLevel, hashTree } from '../../../src/programs/factory/root/verity.ts'
import { peSections } from '../../../src/wire/efi/pe.ts'
import { findTarPlaces } from '../../../src/wire/tar/read.ts'
import { readIso } from '../../rootfs/read-iso.ts'
import { readSquashfs } from '../../rootfs/read-squashfs.ts'
import { line, publicLine, uki, version, withRoot, writeProducts } from './built.ts'
import { newFolder, releaseKey, served } from './served.ts'

const folder = newFolder()
const work = newFolder()
beforeAll(async () => {
  const inside = await withRoot(work)
  for (const arch of architectures) await writeProducts(folder, uki(line, inside.initramfs), arch, inside)
  writeFileSync(join(folder, 'ichor-vmlinuz'), 'kernel')
  writeFileSync(join(folder, 'ichor-initramfs'), 'initramfs')
  const packages = [{ SPDXID: 'SPDXRef-ichor', name: 'ichor' }]
  const relationships = [{ spdxElementId: 'SPDXRef-DOCUMENT', relatedSpdxElement: 'SPDXRef-ichor', relationshipType: 'DESCRIBES' }]
  const document = { spdxVersion: 'SPDX-2.3', SPDXID: 'SPDXRef-DOCUMENT', documentNamespace: 'https://a', packages, relationships }
  writeFileSync(join(folder, 'ichor-amd64.spdx.json'), JSON.stringify(document))
})
afterAll(() => {
  for (const each of [folder, work]) rmSync(each, { recursive: true })
})

/** An extension with a file of some size. */
const offered = (name: string, path = `/usr/local/bin/${name}`, unfit?: string): OfferedExtension => ({
  ref: `${name}.tar`,
  digest: `sha256:${name}`,
  metadata: { name, version: '1.0', author: 'me', description: `does ${name}`, compatibility: { talos: { version: '' } } },
  unfit: () => unfit,
  unpack: async (to) => {
    mkdirSync(to, { recursive: true })
    writeFileSync(join(to, '0'), `${name} `.repeat(60_000))
    return [{ path, type: 'file', mode: 0o755, source: join(to, '0') }]
  },
})
const all = [
  offered('greeting'),
  offered('other'),
  offered('old', '/usr/local/x', 'extension "old.tar": is for others'),
  offered('bad', '/usr/local/etc/own'),
  offered('shell', '/usr/local/bin/sh'),
  offered('modules', '/usr/lib/modules/6.1/a.ko'),
]

function shop(signers: Signers = { key: releaseKey }, extensions = all) {
  const builds = new Builds()
  const factory = served(folder, { workshop: { builds, signers, extensions, url: 'https://factory' } })
  const post = async (...names: string[]): Promise<string> => {
    const body = JSON.stringify({ customization: { extraKernelArgs: ['ip=dhcp'], systemExtensions: { officialExtensions: names } } })
    return ((await (await factory.ask('/schematics', { method: 'POST', body })).json()) as { id: string }).id
  }
  const image = async (name: string, ...names: string[]) => {
    const answer = await factory.ask(`/image/${await post(...names)}/${version}/${name}`)
    const bytes = Buffer.from(await answer.arrayBuffer())
    return { status: answer.status, bytes, reason: answer.status === 200 ? '' : bytes.toString() }
  }
  const close = async () => {
    await factory.close()
    builds.close()
  }
  return { ...factory, post, image, [Symbol.asyncDispose]: close }
}

/** Whether a release is whole and signed, its root under its hash; its root. */
function checked(of: (name: string) => Buffer): ReturnType<typeof readSquashfs> {
  const manifest = checkManifest(of('manifest'), of('manifest.sig').toString(), publicLine(releaseKey))
  for (const { name, size, sha256 } of manifest.files)
    expect([name, of(name).length, new Bun.CryptoHasher('sha256').update(of(name)).digest('hex')]).toEqual([name, size, sha256])
  const { verity } = parseTrust(of('initramfs.xz'))
  const root = of('root.sqsh')
  const data = root.subarray(0, verity.dataBlocks * 4096)
  const { tree, rootHash } = hashTree(hashLevel(data, Buffer.from(verity.salt, 'hex')), Buffer.from(verity.salt, 'hex'))
  expect([rootHash, rootHash, true]).toEqual([verity.rootHash, manifest.rootHash, root.subarray(data.length).equals(Buffer.from(tree))])
  const image = of('vmlinuz.efi')
  const initrd = peSections(image).find(({ name }) => name === '.initrd')
  expect(image.subarray(initrd?.offset, (initrd?.offset ?? 0) + (initrd?.size ?? 0)).equals(of('initramfs.xz'))).toBe(true)
  expect(of('cmdline').toString()).toBe(`${line} ip=dhcp\n`)
  return readSquashfs(root)
}

test.each(architectures)(
  'the installer of a schematic for %s has its extensions under the root hash, and is signed',
  async (arch) => {
    await using factory = shop()
    const { status, bytes, reason } = await factory.image(`installer-${arch}.tar`, 'greeting', 'other')
    expect([status, reason]).toEqual([200, ''])
    const read = async (offset: number, length: number) => bytes.subarray(offset, offset + length)
    const layer = (await findTarPlaces(read, bytes.length)).sort((a, b) => b.size - a.size)[0]
    if (!layer) throw new Error('no layer')
    const content = bytes.subarray(layer.offset, layer.offset + layer.size)
    const places = await findTarPlaces(async (offset, length) => content.subarray(offset, offset + length), content.length)
    const root = checked((name) => {
      const place = places.find((each) => each.name === `usr/install/${arch}/${name}`)
      return content.subarray(place?.offset, (place?.offset ?? 0) + (place?.size ?? 0))
    })
    expect(Buffer.from(root.get('/usr/local/bin/greeting')?.content ?? []).toString()).toBe('greeting '.repeat(60_000))
    expect(Buffer.from(root.get('/usr/bin/init')?.content ?? []).toString()).toBe('init '.repeat(100_000))
    expect(Buffer.from(root.get('/usr/local/etc/own')?.content ?? []).toString()).toBe('own')
    expect([root.get('/usr/local/bin/greeting')?.mode, root.get('/sbin')?.target]).toEqual([0o755, 'usr/bin'])
    const { layers } = JSON.parse(Buffer.from(root.get('/etc/extensions.yaml')?.content ?? []).toString())
    const id = await factory.post('greeting', 'other')
    expect(layers.map(({ image, metadata }: (typeof layers)[number]) => [image, metadata.name, metadata.version])).toEqual([
      ['0.sqsh', 'greeting', '1.0'],
      ['1.sqsh', 'other', '1.0'],
      ['2.sqsh', 'schematic', id],
    ])
    expect([layers[2].metadata.author, layers[2].metadata.extraInfo]).toEqual([
      'Image Factory (https://factory)',
      await (await factory.ask(`/schematics/${id}`)).text(),
    ])
    expect(root.get(`/usr/local/share/schematic/${id}`)?.content).toHaveLength(0)
  },
  30_000,
)

test.each(architectures)(
  'the ISO of a schematic for %s holds the same release in both of its file systems',
  async (arch) => {
    await using factory = shop()
    const { status, bytes, reason } = await factory.image(`metal-${arch}.iso`, 'greeting')
    expect([status, reason]).toEqual([200, ''])
    const { files, boot } = readIso(bytes)
    const root = checked((name) => files.get(`usr/install/${arch}/${name}`) ?? Buffer.alloc(0))
    expect(root.has('/usr/local/bin/greeting')).toBe(true)
    const manifest = (files.get(`usr/install/${arch}/manifest`) ?? '').toString()
    const [, hash = ''] = /^root-hash (\w{16})/m.exec(manifest) ?? []
    expect(files.get(`ichor/${hash}.sqsh`)?.equals(files.get(`usr/install/${arch}/root.sqsh`) ?? Buffer.alloc(0))).toBe(true)
    expect(bytes.length).toBe(bytes.readUInt32LE(16 * 2048 + 80) * 2048)
    expect(boot.efi.start * 2048 + bytes.readUInt32LE(0x1ce + 12) * 512).toBe(bytes.length)
  },
  30_000,
)

test.each([
  ['an unknown one', ['none'], 'extension "none" is not held here, but greeting, other, bad, shell, modules'],
  ['one twice', ['other', 'other'], 'extension "other" is listed twice'],
  ['one for other releases', ['old'], 'extension "old.tar": is for others'],
  ['one that replaces a file of the system', ['bad'], 'path "/usr/local/etc/own" is wanted by the system and by extension bad'],
  [
    'one with a shell',
    ['shell'],
    '"/usr/local/bin/sh" (extension shell) must not be in the root file system: it has no shell, interpreters, core utilities or remote access',
  ],
  [
    'one with modules of another kernel',
    ['modules'],
    '"/usr/lib/modules/6.1/a.ko" (extension modules) is of kernel 6.1, and this image has kernel 6.1.0: build it for that one',
  ],
])('%s is refused in one line', async (_, names, reason) => {
  await using factory = shop()
  const refused = await factory.image('installer-amd64.tar', ...names)
  expect([refused.status, refused.reason]).toEqual([400, `${reason}\n`])
})

test('without the key of the release nothing is made with extensions', async () => {
  await using factory = shop({})
  expect((await factory.image('installer-amd64.tar', 'greeting')).reason).toContain('start the factory with --key')
})

test('extensions are listed and shown on the page, and the SBOM names those of an image', async () => {
  await using factory = shop()
  const list = (await (await factory.ask(`/version/${version}/extensions/official`)).json()) as object[]
  expect(list[0]).toEqual({ name: 'greeting', ref: 'greeting.tar', digest: 'sha256:greeting', author: 'me', description: 'does greeting' })
  expect(list).toHaveLength(5)
  expect(await (await factory.ask('/')).text()).toContain('<input type="checkbox" name="extension" value="greeting">')
  const form = new URLSearchParams([
    ['version', version],
    ['extension', 'greeting'],
  ])
  const posted = await factory.ask('/page/schematic', { method: 'POST', body: form, redirect: 'manual' })
  const page = await (await factory.ask(posted.headers.get('location') ?? '')).text()
  expect([posted.status, page.includes('value="greeting" checked'), page.includes('value="other" checked')]).toEqual([303, true, false])
  const sbom = (await (await factory.ask(`/spdx/${await factory.post('greeting')}/${version}/amd64`)).json()) as {
    packages: { name: string }[]
  }
  expect(sbom.packages.map(({ name }) => name)).toEqual(['ichor', 'greeting', 'schematic'])
}, 30_000)
