import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { cacheFolder } from '../../../rootfs/build/cache.ts'
import { xz, zstd } from '../../../rootfs/squashfs/compressor.ts'
import { withStretch } from '../../../src/programs/factory/build/read-file.ts'
import type { ExtensionFiles } from '../../../src/programs/factory/extensions.ts'
import { FactoryError } from '../../../src/programs/factory/factory-error.ts'
import { unpackerOf } from '../../../src/programs/factory/root/compression.ts'
import { ContentReader } from '../../../src/programs/factory/root/contents.ts'
import { extendRoot, listPath } from '../../../src/programs/factory/root/extend.ts'
import { readSquashfsBase } from '../../../src/programs/factory/root/read.ts'
import { moduleTables } from '../../../src/wire/modules/tables.ts'
import { type Built, builtModule, family, kernelModules, order } from '../../wire/modules/built-module.ts'
import { kernelRelease, withRoot } from './built.ts'
import { newFolder } from './served.ts'

const work = newFolder()
afterAll(() => rmSync(work, { recursive: true }))

const folder = `/usr/lib/modules/${kernelRelease}`
const vermagic = `vermagic=${kernelRelease} SMP preempt mod_unload modversions `
const added: Built = { info: [vermagic, 'alias=usb:v0001p*'], exported: ['sixth_a'], needed: ['fourth_a', 'printk'] }

const extension = (name: string, files: Readonly<Record<string, Uint8Array>>) => ({
  metadata: { name, version: '1.0', author: '', description: '', compatibility: { talos: { version: '' } } },
  files: Object.entries(files).map(([path, bytes]): ExtensionFiles[number] => ({ path, type: 'file', mode: 0o644, bytes })),
})

let count = 0
/** The files of a root with extensions. */
async function extended(files: Readonly<Record<string, Uint8Array>>, options: Parameters<typeof withRoot>[1] = {}) {
  const into = join(work, `${count++}`)
  mkdirSync(into)
  const { root, verity } = await withRoot(into, options)
  const [from, to] = [join(into, 'root'), join(into, 'extended')]
  const extensions = [extension('one', files)]
  const stretch = { file: from, offset: 0, length: root.length }
  const after = await extendRoot(to, stretch, verity, { extensions, signal: new AbortController().signal })
  return withStretch({ file: to, offset: 0, length: 0 }, async (read) => {
    const base = await readSquashfsBase(read, after.dataBlocks * 4096, unpackerOf)
    const reader = new ContentReader(read, base, unpackerOf(base.compression))
    const found = new Map<string, Buffer>()
    for (const path of base.contents.keys()) found.set(path, await reader.content(path))
    return found
  })
}

const expected = (modules: Readonly<Record<string, Built>>) => moduleTables(kernelModules(modules), order)

test.each([
  ['Zstandard', async () => zstd(3), 128 << 10],
  ['Zstandard in small blocks', async () => zstd(3), 4096],
  ['XZ', () => xz(4096), 4096],
] as const)('a root packed with %s gets the modules of an extension, and tables with them', async (_, compressor, blockSize) => {
  const path = `${folder}/extras/six-th.ko`
  const found = await extended({ [path]: builtModule(added) }, { compressor: await compressor(), blockSize })
  const tables = expected({ ...family, 'extras/six-th.ko': added })
  for (const [name, bytes] of tables) expect([name, found.get(`${folder}/${name}`)?.equals(bytes)]).toEqual([name, true])
  expect(found.get(`${folder}/modules.dep`)?.toString()).toContain(
    'extras/six-th.ko: kernel/b/fourth.ko kernel/a/second.ko kernel/a/first-one.ko\n',
  )
  expect(found.get(path)?.equals(builtModule(added))).toBe(true)
  expect(found.get(`${folder}/modules.builtin`)?.toString()).toBe('kernel/fs/ext4/ext4.ko\n')
  expect(found.get('/usr/bin/init')?.toString()).toBe('init '.repeat(100_000))
  const { layers } = JSON.parse(found.get(listPath)?.toString() ?? '')
  expect(layers.map(({ image, metadata }: (typeof layers)[number]) => [image, metadata.name, metadata.version])).toEqual([
    ['0.sqsh', 'one', '1.0'],
    ['modules.dep.sqsh', 'modules.dep', kernelRelease],
  ])
})

test('a module below "updates" takes the place of the module of its name', async () => {
  const other: Built = { ...added, exported: ['fourth_a'] }
  const found = await extended({ [`${folder}/updates/fourth.ko`]: builtModule({ ...other, needed: [] }) })
  expect(found.get(`${folder}/modules.dep`)?.toString()).toContain('fifth.ko: updates/fourth.ko kernel/a/first-one.ko\n')
  expect(found.get(`${folder}/modules.dep`)?.toString()).not.toContain('kernel/b/fourth.ko')
})

test('an extension without modules leaves the tables as they are', async () => {
  const found = await extended({ '/usr/local/x': Buffer.from('x') })
  expect(found.get(`${folder}/modules.dep`)?.equals(expected(family).get('modules.dep') ?? Buffer.alloc(0))).toBe(true)
  expect(found.get(listPath)?.toString()).not.toContain('modules.dep')
})

const foreign = { ...added, info: ['vermagic=6.1.0-9-amd64 SMP'] }
test.each([
  ['of another kernel', '/usr/lib/modules/6.6.1/extras/a.ko', builtModule(added), 'is of kernel 6.6.1, and this image has kernel 6.1.0'],
  [
    'built for another kernel',
    `${folder}/extras/a.ko`,
    builtModule(foreign),
    'was built for kernel 6.1.0-9-amd64, and this image has kernel 6.1.0',
  ],
  ['without a signature', `${folder}/extras/a.ko`, builtModule({ ...added, signed: false }), 'is not signed'],
  ['that is compressed', `${folder}/extras/a.ko.xz`, builtModule(added), 'is compressed'],
  ['that is none', `${folder}/extras/a.ko`, Buffer.from('none'), 'is no kernel module: decode kernel module at 0: it is no ELF file'],
  ['with blanks in its name', `${folder}/extras/a b.ko`, builtModule(added), 'has a name with blanks'],
  ['with the name of another', `${folder}/extras/fourth.ko`, builtModule(added), 'has the name of "kernel/b/fourth.ko" of the system'],
  ['that needs itself through others', `${folder}/extras/a.ko`, builtModule({ ...added, exported: ['printk'] }), 'in a circle'],
])('a module %s is refused in one line', async (_, path, bytes, reason) => {
  const refused = await extended({ [path]: bytes }).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(FactoryError)
  expect(refused).toMatchObject({ status: 400, message: expect.stringContaining(reason) })
  expect(String(refused)).not.toContain('\n')
})

/** Debian's kernel, as `mkimage.sh` unpacks it. */
const parts = join(cacheFolder, 'parts')
const [debian] = [...new Bun.Glob('debian-linux-image-*/files/lib/modules/*/modules.order').scanSync({ cwd: parts })]

test.skipIf(!debian)("a signed module of Debian's kernel that images leave out is listed with those that it needs", async () => {
  const tree = dirname(join(parts, debian ?? ''))
  const kernel = basename(tree)
  const names = [
    'kernel/drivers/cdrom/cdrom.ko',
    'kernel/fs/nls/nls_utf8.ko',
    'modules.order',
    'modules.builtin',
    'modules.builtin.modinfo',
  ]
  const own = new Map(names.map((name) => [name, readFileSync(join(tree, name))]))
  const path = 'kernel/fs/hfsplus/hfsplus.ko'
  const files = { [`/usr/lib/modules/${kernel}/${path}`]: readFileSync(join(tree, path)) }
  const found = await extended(files, { kernel, files: own.set('modules.dep', Buffer.alloc(0)) })
  const table = (name: string) => found.get(`/usr/lib/modules/${kernel}/${name}`)?.toString()
  expect(table('modules.dep')).toContain(`\n${path}: kernel/drivers/cdrom/cdrom.ko\n`)
  expect(table('modules.alias')).toContain('\nalias fs-hfsplus hfsplus\n')
})
