import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parse } from 'yaml'
import { addExtensions } from '../../rootfs/image/extensions/extensions.ts'
import { listPath } from '../../src/programs/factory/root/extend.ts'
import { closedSuffix } from '../../src/programs/factory/root/modules.ts'
import { Tree, TreeError } from '../../src/programs/factory/root/tree.ts'
import { verifyTree } from '../../src/programs/factory/root/verify.ts'
import type { Extension } from '../../src/programs/talosctl/extension/unpack.ts'
import { moduleTables } from '../../src/wire/modules/tables.ts'
import { builtModule, family, kernelModules, order } from '../wire/modules/built-module.ts'

let work: string
beforeAll(() => {
  work = mkdtempSync(join(tmpdir(), 'extensions-test-'))
})
afterAll(() => rmSync(work, { recursive: true, force: true }))

function extension(name: string, files: Record<string, string | Uint8Array>): Extension {
  const entries = Object.entries(files).map(([path, text]) => {
    const source = join(work, `${name}${path.replaceAll('/', '-')}`)
    writeFileSync(source, text)
    return { path, type: 'file' as const, mode: 0o644, size: text.length, source }
  })
  const metadata = { name, version: '1.0', author: '', description: '', compatibility: { talos: { version: '' } } }
  return { origin: name, metadata, entries }
}

function system(): Tree {
  const tree = new Tree()
  tree.text('base', listPath, '')
  tree.text('base', '/usr/local/etc/own', '')
  return tree
}

const contentOf = async (tree: Tree, path: string) => {
  const entry = tree.get(path)
  return entry?.bytes ? Buffer.from(entry.bytes).toString() : await Bun.file(entry?.source ?? '').text()
}

test('extensions become part of the tree, and are listed', async () => {
  const tree = system()
  await addExtensions(tree, [extension('a', { '/usr/local/bin/a': 'a' }), extension('b', { '/usr/local/bin/b': 'b' })])
  expect(await contentOf(tree, '/usr/local/bin/b')).toBe('b')
  const { layers } = parse(await contentOf(tree, listPath))
  expect(layers.map(({ image, metadata }: { image: string; metadata: { name: string } }) => [image, metadata.name])).toEqual([
    ['0.sqsh', 'a'],
    ['1.sqsh', 'b'],
  ])
})

test('without extensions the list is empty', async () => {
  const tree = system()
  await addExtensions(tree, [])
  expect(await contentOf(tree, listPath)).toBe('')
})

test('of two that have one path the later one wins', async () => {
  const tree = system()
  await addExtensions(tree, [extension('a', { '/usr/local/x': 'a' }), extension('b', { '/usr/local/x': 'b' })])
  expect(await contentOf(tree, '/usr/local/x')).toBe('b')
})

test('none replaces a file of the system', async () => {
  await expect(addExtensions(system(), [extension('a', { '/usr/local/etc/own': '' })])).rejects.toThrow(
    new TreeError('path "/usr/local/etc/own" is wanted by base and by extension a'),
  )
})

test('a shell among the programs of the system is refused', async () => {
  const tree = system()
  await addExtensions(tree, [extension('a', { '/usr/local/bin/bash': '' })])
  expect(() => verifyTree(tree)).toThrow('"/usr/local/bin/bash" (extension a) must not be in the root file system')
})

test('in the root of a service links lead within that root', async () => {
  const tree = system()
  tree.link('extension a', '/usr/local/lib/containers/a/etc/x', '/opt/x')
  expect(() => verifyTree(tree)).not.toThrow()
  tree.link('extension a', '/usr/local/etc/x', '/opt/x')
  expect(() => verifyTree(tree)).toThrow('leads nowhere')
})

const module = '/usr/lib/modules/6.1.0-1-amd64/extras/x.ko'

test('modules of another kernel are refused, those of the hardened kernel, and those in images without a kernel', async () => {
  const kernel = { release: '6.1.0-2-amd64', modules: work }
  await expect(addExtensions(system(), [extension('a', { [module]: '' })], kernel)).rejects.toThrow(
    `"${module}" (extension a) is of kernel 6.1.0-1-amd64, and this image has kernel 6.1.0-2-amd64: build it for that one`,
  )
  const closed = { release: `6.1.0${closedSuffix}`, modules: work }
  await expect(addExtensions(system(), [extension('a', { [module]: '' })], closed)).rejects.toThrow(
    `"${module}" (extension a) is not loaded by kernel 6.1.0-ichor-hardened, which accepts modules of its own build only`,
  )
  await expect(addExtensions(system(), [extension('a', { [module]: '' })])).rejects.toThrow('go into images for machines')
})

test('the name of the hardened kernel is the one that its options give it', () => {
  expect(readFileSync(join(import.meta.dir, '../../rootfs/kernel/options/base.config'), 'utf8')).toContain(
    `CONFIG_LOCALVERSION="${closedSuffix}"\n`,
  )
})

test.skipIf(!existsSync('/usr/sbin/depmod'))('depmod lists the modules of extensions as the image factory does', async () => {
  const release = '6.1.0-3-amd64'
  const system = new Tree()
  system.text('base', listPath, '')
  for (const [path, built] of Object.entries(family)) {
    const file = join(work, 'modules', release, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, builtModule(built))
    system.file('modules', `/usr/lib/modules/${release}/${path}`, file, 0o644)
  }
  for (const [name, text] of [
    ['modules.order', order],
    ['modules.builtin', ''],
    ['modules.builtin.modinfo', ''],
  ] as const)
    writeFileSync(join(work, 'modules', release, name), text)
  const added = { info: [`vermagic=${release} SMP `, 'alias=usb:v0001p*'], needed: ['fourth_a'] }
  const files = { [`/usr/lib/modules/${release}/extras/x.ko`]: builtModule(added) }
  await addExtensions(system, [extension('x', files)], { release, modules: join(work, 'modules') })
  const modules = kernelModules({ ...family, 'extras/x.ko': added })
  for (const [name, bytes] of moduleTables(modules, order)) {
    const lines = (content: Uint8Array) => Buffer.from(content).toString('latin1').split('\n').sort()
    expect([name, lines(system.get(`/usr/lib/modules/${release}/${name}`)?.bytes ?? Buffer.alloc(0))]).toEqual([name, lines(bytes)])
  }
  expect(await contentOf(system, listPath)).toContain('modules.dep')
})
