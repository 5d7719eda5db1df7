import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as files from '../../../src/linux/fs/files.ts'
import { SystemError } from '../../../src/linux/system-error.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'files-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('a file is replaced atomically, with its mode, and no temporary file is left', async () => {
  const path = join(folder, 'a')
  await files.writeAtomic(path, 'one')
  await files.writeAtomic(path, 'two', { mode: 0o600 })
  expect(files.readText(path)).toBe('two')
  expect(files.stat(path).mode & 0o777).toBe(0o600)
  expect(files.list(folder)).toEqual(['a'])
})

test('a failed write leaves nothing behind', async () => {
  files.mkdirAll(join(folder, 'taken/inner'))
  await expect(files.writeAtomic(join(folder, 'taken'), 'x')).rejects.toThrow(SystemError)
  await expect(files.writeAtomic(join(folder, 'none/x'), 'x')).rejects.toThrow('ENOENT')
  expect(files.list(folder)).toEqual(['taken'])
})

test('a file beyond the limit is refused, one without a size is read', () => {
  files.append(join(folder, 'log'), 'x'.repeat(100))
  files.append(join(folder, 'log'), new Uint8Array([10]))
  expect(files.read(join(folder, 'log')).length).toBe(101)
  expect(() => files.read(join(folder, 'log'), { limit: 100 })).toThrow('EFBIG (larger than 100 bytes)')
  expect(files.readText('/proc/self/status')).toStartWith('Name:')
})

test('a missing file is distinguished from a failure', () => {
  expect(files.readTextIfThere(join(folder, 'none'))).toBeUndefined()
  expect(files.lstatIfThere(join(folder, 'none/deeper'))).toBeUndefined()
  expect(() => files.readText(join(folder, 'none'))).toThrow(`read ${JSON.stringify(join(folder, 'none'))}: ENOENT`)
  expect(() => files.readTextIfThere(folder)).toThrow('EISDIR')
})

test('a slice is as long as the file allows', async () => {
  files.append(join(folder, 's'), '0123456789')
  expect(Buffer.from(await files.readSlice(join(folder, 's'), 8, 10)).toString()).toBe('89')
  await expect(files.readSlice(join(folder, 'none'), 0, 1)).rejects.toThrow('ENOENT')
})

test('a link is replaced by a link and by nothing else', () => {
  const path = join(folder, 'l')
  files.symlink('/a', path)
  files.symlink('/b', path)
  expect(files.readlink(path)).toBe('/b')
  files.append(join(folder, 'f'), '')
  expect(() => files.symlink('/a', join(folder, 'f'))).toThrow('EEXIST')
})

test('a walk yields folders before their contents, in order, and follows no link', async () => {
  files.mkdirAll(join(folder, 'b/c'), { mode: 0o700 })
  files.append(join(folder, 'b/c/x'), '')
  files.append(join(folder, 'a'), '')
  files.symlink('/', join(folder, 'root'))
  const met = async (options = {}) =>
    (await Array.fromAsync(files.walk(folder, options))).map(({ relative, depth }) => `${depth}:${relative}`)
  expect(await met()).toEqual(['0:', '1:a', '1:b', '2:b/c', '3:b/c/x', '1:root'])
  expect(await met({ depth: 1 })).toEqual(['0:', '1:a', '1:b', '1:root'])
  const [lost] = await Array.fromAsync(files.walk(join(folder, 'none')))
  expect(lost?.error?.message).toContain('ENOENT')
})

test('a folder is removed with its contents, and removing a missing one is no error', async () => {
  files.mkdirAll(join(folder, 'b/c'))
  await files.remove(join(folder, 'b'))
  await files.remove(join(folder, 'b'))
  expect(files.exists(join(folder, 'b'))).toBe(false)
})

test('space is taken without being written, and a file that has none is not left behind', () => {
  const path = join(folder, 'reserve')
  files.allocate(path, 3 << 20)
  const { size, blocks, mode } = files.stat(path)
  expect([size, blocks * 512 >= 3 << 20, mode & 0o777]).toEqual([3 << 20, true, 0o600])
  expect(() => files.allocate(path, 2 ** 60)).toThrow(/^fallocate ".*reserve": E(NOSPC|FBIG)/)
  expect(files.exists(path)).toBe(false)
})
