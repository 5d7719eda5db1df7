import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hashOf } from '../../rootfs/build/cache.ts'
import { BlockPress } from '../../rootfs/squashfs/blocks.ts'
import { zstd } from '../../rootfs/squashfs/compressor.ts'
import { SquashfsError } from '../../src/programs/factory/root/error.ts'
import { Tree } from '../../src/programs/factory/root/tree.ts'
import { writeSquashfs } from '../../src/programs/factory/root/writer.ts'
import { type Found, readSquashfs } from './read-squashfs.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-squashfs-'))
afterAll(() => rmSync(folder, { recursive: true }))

const blockSize = 4096
const noise = (length: number, seed: number) => {
  let state = seed
  return Uint8Array.from({ length }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    return state >>> 16
  })
}

async function pack(tree: Tree, name = 'image'): Promise<Buffer> {
  const path = join(folder, name)
  await writeSquashfs(path, tree.entries(), { blockSize, press: new BlockPress(join(folder, 'blocks'), zstd(3)) })
  return readFileSync(path)
}

function full(): Tree {
  const tree = new Tree()
  tree.text('a', '/etc/motd', 'hello\n')
  tree.text('a', '/etc/same', 'hello\n')
  tree.text('a', '/etc/empty', '')
  tree.text('a', '/etc/secret', 'x', 0o600)
  tree.text('a', '/usr/bin/exact', new Uint8Array(2 * blockSize).fill(7), 0o755)
  tree.text('a', '/usr/bin/noise', noise(3 * blockSize + 5, 1), 0o755)
  tree.add({ path: '/usr/bin/other', type: 'file', mode: 0o755, linkTo: '/usr/bin/noise', part: 'a' })
  tree.link('a', '/bin', 'usr/bin')
  tree.dir('a', '/proc', 0o555)
  tree.add({ path: '/etc/owned', type: 'file', mode: 0o640, uid: 60, gid: 61, bytes: Buffer.from('o'), part: 'a' })
  for (let n = 0; n < 700; n++) tree.text('a', `/usr/share/many/file-${String(n).padStart(4, '0')}`, `content ${n}\n`)
  return tree
}

test('what was packed is read back: bytes, modes, owners, links and empty folders', async () => {
  const tree = full()
  const found = readSquashfs(await pack(tree))
  const shape = (each: Found) => ({
    type: each.type,
    mode: each.mode,
    uid: each.uid,
    gid: each.gid,
    target: each.target,
    hash: each.content && hashOf(each.content),
  })
  const wanted = tree.entries().map((entry) => {
    const bytes = entry.linkTo ? tree.get(entry.linkTo)?.bytes : entry.bytes
    return [
      entry.path,
      { type: entry.type, mode: entry.mode, uid: entry.uid ?? 0, gid: entry.gid ?? 0, target: entry.target, hash: bytes && hashOf(bytes) },
    ] as const
  })
  expect(Object.fromEntries([...found].filter(([path]) => path !== '/').map(([path, each]) => [path, shape(each)]))).toEqual(
    Object.fromEntries(wanted),
  )
})

test('a further name is the same inode, and inodes are numbered without gaps', async () => {
  const found = readSquashfs(await pack(full()))
  expect(found.get('/usr/bin/other')?.number).toBe(found.get('/usr/bin/noise')!.number)
  expect(found.get('/usr/bin/noise')?.names).toBe(2)
  const numbers = new Set([...found.values()].map(({ number }) => number))
  expect(Math.max(...numbers)).toBe(numbers.size)
})

test('equal files are stored once', async () => {
  const tree = new Tree()
  tree.text('a', '/one', noise(9 * blockSize, 2))
  const once = (await pack(tree)).length
  tree.text('a', '/two', noise(9 * blockSize, 2))
  expect((await pack(tree)).length).toBe(once)
})

test('equal trees give equal bytes, with and without remembered blocks', async () => {
  const once = await pack(full())
  rmSync(join(folder, 'blocks'), { recursive: true })
  expect((await pack(full(), 'again')).equals(once)).toBe(true)
})

test('a link to what is no file is refused', async () => {
  const tree = new Tree()
  tree.add({ path: '/a', type: 'file', mode: 0o644, linkTo: '/nothing', part: 'a' })
  await expect(pack(tree)).rejects.toThrow(SquashfsError)
})
