import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as files from '../../../src/linux/fs/files.ts'
import { copyLayer } from '../../../src/os/cri/copy-layer.ts'

let folder = ''
let source = ''
let target = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'layer-'))
  source = join(folder, 'layer')
  target = join(folder, 'snapshot')
  mkdirSync(join(source, 'etc'), { recursive: true })
  mkdirSync(target)
})
afterEach(() => rmSync(folder, { recursive: true }))

test('a small layer becomes a real one, with modes and links', async () => {
  writeFileSync(join(source, 'pause'), 'program')
  chmodSync(join(source, 'pause'), 0o755)
  chmodSync(join(source, 'etc'), 0o700)
  symlinkSync('../pause', join(source, 'etc/link'))
  expect(await copyLayer(files, source, target)).toBe(true)
  expect(readFileSync(join(target, 'pause'), 'utf8')).toBe('program')
  expect(statSync(join(target, 'pause')).mode & 0o7777).toBe(0o755)
  expect(statSync(join(target, 'etc')).mode & 0o7777).toBe(0o700)
  expect(readlinkSync(join(target, 'etc/link'))).toBe('../pause')
})

test('a copy that a power cut left incomplete is completed, and what is there stays', async () => {
  writeFileSync(join(source, 'pause'), 'program')
  symlinkSync('pause', join(source, 'link'))
  await copyLayer(files, source, target)
  const { ino } = statSync(join(target, 'pause'))
  await copyLayer(files, source, target)
  expect(statSync(join(target, 'pause')).ino).toBe(ino)
  truncateSync(join(target, 'pause'))
  await copyLayer(files, source, target)
  expect(readFileSync(join(target, 'pause'), 'utf8')).toBe('program')
})

test('a large layer is left to be mounted', async () => {
  writeFileSync(join(source, 'a'), 'small')
  writeFileSync(join(source, 'program'), Buffer.alloc(100_000))
  expect(await copyLayer(files, source, target)).toBe(false)
  expect(existsSync(join(target, 'a'))).toBe(false)
})

test('a layer of very many files is left to be mounted', async () => {
  for (let count = 0; count < 200; count++) writeFileSync(join(source, String(count)), '')
  expect(await copyLayer(files, source, target)).toBe(false)
})
