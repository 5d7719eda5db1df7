/** What `list` and `usage` are sent, with the numbers that the field's own client puts into its requests. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import * as files from '../../../src/linux/fs/files.ts'
import * as xattr from '../../../src/linux/fs/xattr.ts'
import { listMethods } from '../../../src/os/files/api/list.ts'
import type { machine } from '../../../src/rpc/messages.ts'

const root = mkdtempSync(join(tmpdir(), 'ichor-list-'))
afterAll(() => rmSync(root, { recursive: true }))
mkdirSync(join(root, 'a/b/c'), { recursive: true })
writeFileSync(join(root, 'a/one'), 'x'.repeat(1000))
writeFileSync(join(root, 'a/b/two'), 'x'.repeat(20))
writeFileSync(join(root, 'a/b/c/three'), 'x'.repeat(300))
symlinkSync('a', join(root, 'link'))
symlinkSync('a/one', join(root, 'alias'))

const methods = listMethods({ files, xattr } as never)
const context = { store: new Store(), log: silent, signal: new AbortController().signal }

async function call<T>(path: string, request: object): Promise<T[]> {
  const method = methods.find((each) => each.path === path)!
  const sent: T[] = []
  for await (const each of method.handle(request as never, context as never) as AsyncIterable<T>) sent.push(each)
  return sent
}

const list = async (request: object) =>
  (await call<machine.FileInfo>('machine.MachineService/List', { recurse: false, recursionDepth: 1, types: [], ...request })).map(
    ({ relativeName }) => relativeName,
  )

const usage = async (request: object) =>
  call<machine.DiskUsageInfo>('machine.MachineService/DiskUsage', { recursionDepth: 0, all: false, threshold: 0, ...request })

describe('a list', () => {
  test('of a directory begins with itself, of a file or a link to one is its name', async () => {
    expect(await list({ root: join(root, 'a') })).toEqual(['.', 'b', 'one'])
    expect(await list({ root: join(root, 'a/one') })).toEqual(['one'])
    expect(await list({ root: join(root, 'alias') })).toEqual(['one'])
  })

  test('of a link to a directory is that of the directory', async () => {
    expect(await list({ root: join(root, 'link') })).toEqual(['.', 'b', 'one'])
  })

  test('recurses to the requested depth, without limit for zero and less', async () => {
    const all = ['.', 'b', 'b/c', 'b/c/three', 'b/two', 'one']
    expect(await list({ root: join(root, 'a'), recurse: true, recursionDepth: 2 })).toEqual(['.', 'b', 'b/c', 'b/two', 'one'])
    for (const recursionDepth of [0, -1]) expect(await list({ root: join(root, 'a'), recurse: true, recursionDepth })).toEqual(all)
  })

  test('stays in the directory without recursion, whatever the depth', async () => {
    for (const recursionDepth of [-1, 0, 1]) expect(await list({ root: join(root, 'a'), recursionDepth })).toEqual(['.', 'b', 'one'])
  })

  test('takes a relative path relative to the root', async () => {
    expect(await list({ root: join(root, 'a').slice(1) })).toEqual(['.', 'b', 'one'])
  })
})

describe('usage', () => {
  const names = async (request: object) => (await usage({ paths: [join(root, 'a')], ...request })).map(({ relativeName }) => relativeName)

  test('covers the requested levels, the path itself being the first', async () => {
    expect(await names({ recursionDepth: 1 })).toEqual(['.'])
    expect(await names({ recursionDepth: 2 })).toEqual(['b', '.'])
    expect(await names({ recursionDepth: 3 })).toEqual(['b/c', 'b', '.'])
    expect(await names({ recursionDepth: 0 })).toEqual(['b/c', 'b', '.'])
  })

  test('includes files on request', async () => {
    expect(await names({ recursionDepth: 2, all: true })).toEqual(['b', 'one', '.'])
    expect((await usage({ paths: [join(root, 'a/one')], all: true })).map(({ relativeName, size }) => [relativeName, size])).toEqual([
      ['one', 1000],
    ])
  })

  test('omits sizes below a threshold, or above a negative one', async () => {
    const sizes = Object.fromEntries((await usage({ paths: [join(root, 'a')] })).map(({ relativeName, size }) => [relativeName, size]))
    expect(await names({ threshold: sizes.b! + 1 })).toEqual(['.'])
    expect(await names({ threshold: -sizes.b! })).toEqual(['b/c', 'b'])
  })

  test('of a missing path is a row with the reason, and other paths are measured', async () => {
    const rows = await usage({ paths: [join(root, 'none'), join(root, 'a/b/c')] })
    expect(rows.map(({ relativeName, error }) => [relativeName, error ?? ''])).toEqual([
      [join(root, 'none'), `measure "${join(root, 'none')}": no such file or directory`],
      ['.', ''],
    ])
  })
})
