import { afterAll, expect, test } from 'bun:test'
import { linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { silent } from '../../../src/cosi/log.ts'
import * as files from '../../../src/linux/fs/files.ts'
import { readMethods } from '../../../src/os/files/api/read.ts'
import { archive } from '../../../src/os/files/archive.ts'
import type { common } from '../../../src/rpc/messages.ts'

const folder = mkdtempSync(join(tmpdir(), 'archive-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('tar extracts identical contents, modes, times, links and long names', async () => {
  const source = join(folder, 'source')
  const long = `${'d'.repeat(90)}/${'f'.repeat(120)}`
  mkdirSync(join(source, 'd'.repeat(90)), { recursive: true })
  writeFileSync(join(source, 'plain'), 'x'.repeat(1000), { mode: 0o640 })
  writeFileSync(join(source, long), 'long')
  linkSync(join(source, 'plain'), join(source, 'twin'))
  symlinkSync('plain', join(source, 'soft'))
  utimesSync(join(source, 'plain'), 1_000_000_000, 1_000_000_000)
  const chunks: Uint8Array[] = []
  for await (const chunk of archive(files, source, () => {})) chunks.push(chunk)
  const target = join(folder, 'target')
  mkdirSync(target)
  writeFileSync(join(folder, 'a.tar'), Buffer.concat(chunks))
  const tar = Bun.spawnSync(['tar', '-xf', join(folder, 'a.tar'), '-C', target])
  expect(tar.stderr.toString()).toBe('')
  expect(readFileSync(join(target, long), 'utf8')).toBe('long')
  expect(statSync(join(target, 'plain'))).toMatchObject({ size: 1000, mtimeMs: 1_000_000_000_000 })
  expect(statSync(join(target, 'plain')).ino).toBe(statSync(join(target, 'twin')).ino)
  expect(files.readlink(join(target, 'soft'))).toBe('plain')
})

/** Names in a tar. */
const namesIn = (tar: Uint8Array): string[] =>
  Bun.spawnSync(['tar', '-t'], { stdin: tar }).stdout.toString().split('\n').filter(Boolean).toSorted()

test('the directory itself is no entry, and a single file is one by its name', async () => {
  const source = join(folder, 'tree')
  mkdirSync(join(source, 'sub'), { recursive: true })
  writeFileSync(join(source, 'sub/file'), 'x')
  const pack = async (path: string) => namesIn(Buffer.concat(await Array.fromAsync(archive(files, path, () => {}))))
  expect(await pack(source)).toEqual(['sub/', 'sub/file'])
  expect(await pack(join(source, 'sub/file'))).toEqual(['file'])
})

test('a copy with unreadable files is complete without them, and reports them in its last message', async () => {
  const source = join(folder, 'half')
  mkdirSync(source)
  for (const name of ['a', 'b', 'c']) writeFileSync(join(source, name), `${name}`.repeat(600))
  const broken: typeof files.openRead = (path, options) => {
    if (path.endsWith('/b')) throw new Error('input/output error')
    return files.openRead(path, options)
  }
  const [, copy] = readMethods({ kernel: { files: { ...files, openRead: broken } }, log: silent } as never)
  const sent = (await Array.fromAsync(copy!.handle({ rootPath: source } as never, {} as never) as AsyncIterable<Partial<common.Data>>)) as {
    bytes?: Uint8Array
    metadata?: { error: string }
  }[]
  expect(sent.at(-1)).toEqual({ metadata: { error: `1 error occurred:\n\t* skipping "${join(source, 'b')}": input/output error\n\n` } })
  expect(namesIn(gunzipSync(Buffer.concat(sent.slice(0, -1).map(({ bytes }) => bytes!))))).toEqual(['a', 'b', 'c'])
})
