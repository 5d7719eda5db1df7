import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { UsageError } from '../../rootfs/build/failure.ts'
import { run } from '../../rootfs/build/run.ts'
import { imageCacheFiles } from '../../rootfs/image/image-cache.ts'
import { fileSystemPackage, imageCacheSize, writeImageCache } from '../../rootfs/image/image-cache-disk.ts'
import { packCache } from '../../src/programs/talosctl/image-cache/layout.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-image-cache-'))
afterAll(() => rmSync(folder, { recursive: true }))

const contents = {
  [`blob/sha256-${'a'.repeat(64)}`]: 'layer'.repeat(2000),
  'manifests/docker.io/library/a/reference/V1': '{}',
  'manifests/host_5000_/b/reference/1': '{"b":1}',
}

function flat(name: string): string {
  for (const [path, content] of Object.entries({ ...contents, 'lost+found/x': '' })) {
    mkdirSync(dirname(join(folder, name, path)), { recursive: true })
    writeFileSync(join(folder, name, path), content)
  }
  return join(folder, name)
}

test('a folder of plain files is taken as it is, and an image that holds them is unpacked', async () => {
  const plain = await imageCacheFiles(flat('flat'), join(folder, 'unused'), 'amd64')
  expect(plain.map(({ path, size }) => [path, size])).toEqual(Object.entries(contents).map(([path, content]) => [path, content.length]))
  const layout = join(folder, 'layout')
  await packCache(flat('packed'), layout, ['linux/amd64'])
  const unpacked = await imageCacheFiles(layout, join(folder, 'work'), 'amd64')
  expect(unpacked.map(({ path, file }) => [path, readFileSync(file, 'utf8')])).toEqual(Object.entries(contents))
})

test('a folder that holds no images is refused', async () => {
  mkdirSync(join(folder, 'none/manifests'), { recursive: true })
  await expect(imageCacheFiles(join(folder, 'none'), folder, 'amd64')).rejects.toThrow(UsageError)
  await expect(imageCacheFiles(join(folder, 'nothing'), folder, 'amd64')).rejects.toThrow('there is no such file or folder')
})

test.skipIf(!existsSync(fileSystemPackage.shown))('the file system of a disk holds them, and equal images give equal bytes', async () => {
  const made = async (name: string) => {
    const files = await imageCacheFiles(flat(name), folder, 'amd64')
    expect(imageCacheSize(files)).toBe(32 << 20)
    await writeImageCache(join(folder, `${name}.img`), files, '11111111-2222-3333-4444-555555555555')
    return join(folder, `${name}.img`)
  }
  const [one, two] = [await made('one'), await made('two')]
  expect(readFileSync(one).equals(readFileSync(two))).toBe(true)
  for (const [path, content] of Object.entries(contents))
    expect(await run([fileSystemPackage.shown, '-R', `cat "/${path}"`, one])).toBe(content)
})
