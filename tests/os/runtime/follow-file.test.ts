import { afterAll, expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as files from '../../../src/linux/fs/files.ts'
import { followFile } from '../../../src/os/runtime/follow-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-follow-'))
afterAll(() => rmSync(folder, { recursive: true }))
let count = 0

/** A log of its own, followed: what it has given so far can be waited for. */
function followed(before: string, tailLines = -1) {
  const path = join(folder, `${count++}.log`)
  writeFileSync(path, before)
  const abort = new AbortController()
  const stream = followFile({ files }, path, { follow: true, tailLines, signal: abort.signal })
  let text = ''
  return {
    path,
    async until(wanted: string): Promise<void> {
      while (!text.includes(wanted)) text += Buffer.from((await stream.next()).value ?? '').toString()
    },
    async end(): Promise<string> {
      abort.abort()
      for await (const bytes of stream) text += Buffer.from(bytes).toString()
      return text
    },
  }
}

/** Puts a log aside as the kubelet does, and begins a new one. */
function rotate(path: string, stamp: string, next: string): void {
  renameSync(path, `${path}.${stamp}`)
  writeFileSync(path, next)
}

const lines = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `line ${from + i}\n`).join('')

test('a log that is put aside is read to its end, and the next one from its beginning', async () => {
  const log = followed(lines(0, 3))
  await log.until('line 2\n')
  appendFileSync(log.path, lines(3, 5))
  rotate(log.path, '20261122-100000', lines(5, 7))
  await log.until('line 6\n')
  appendFileSync(log.path, lines(7, 8))
  await log.until('line 7\n')
  expect(await log.end()).toBe(lines(0, 8))
})

test('nothing is lost or repeated when it is rotated several times between two polls, compressed or not', async () => {
  const log = followed(lines(0, 10), 1)
  await log.until('line 9\n')
  appendFileSync(log.path, lines(10, 20))
  rotate(log.path, '20261122-100000', lines(20, 30))
  rotate(log.path, '20261122-100001', lines(30, 40))
  rotate(log.path, '20261122-100002', lines(40, 50))
  for (const stamp of ['20261122-100000', '20261122-100001']) {
    writeFileSync(`${log.path}.${stamp}.gz`, Bun.gzipSync(files.read(`${log.path}.${stamp}`) as Uint8Array<ArrayBuffer>))
    rmSync(`${log.path}.${stamp}`)
  }
  await log.until('line 49\n')
  rotate(log.path, '20261122-100003', lines(50, 60))
  await log.until('line 59\n')
  expect(await log.end()).toBe(lines(9, 60))
})

test('the writer may still end a line in the old file while the new one is there', async () => {
  const log = followed('')
  appendFileSync(log.path, 'one\n')
  await log.until('one\n')
  renameSync(log.path, `${log.path}.20261122-100000`)
  appendFileSync(`${log.path}.20261122-100000`, 'two\n')
  await log.until('two\n')
  writeFileSync(log.path, 'three\n')
  await log.until('three\n')
  expect(await log.end()).toBe('one\ntwo\nthree\n')
})

test('a file truncated in place is read from its start, and one not followed ends', async () => {
  const log = followed('a long first line\n')
  await log.until('line\n')
  writeFileSync(log.path, 'new\n')
  await log.until('new\n')
  expect(await log.end()).toBe('a long first line\nnew\n')
  const whole = await Array.fromAsync(followFile({ files }, log.path, {}))
  expect(Buffer.concat(whole).toString()).toBe('new\n')
})

/** What a log gives that was put aside, compressed, and put aside once more between two looks. */
async function rotatedTwice(compressed: Uint8Array, limit?: number): Promise<{ sizes: number[]; text: string }> {
  const path = join(folder, `${count++}.log`)
  writeFileSync(path, 'first\n')
  const abort = new AbortController()
  const stream = followFile({ files }, path, { follow: true, signal: abort.signal }, { ...(limit && { limit }) })
  const pieces = [Buffer.from((await stream.next()).value ?? '')]
  rotate(path, '20261122-100000', '')
  writeFileSync(`${path}.20261122-100001.gz`, compressed)
  rmSync(path)
  writeFileSync(path, 'last\n')
  for await (const bytes of stream) {
    pieces.push(Buffer.from(bytes))
    if (bytes.toString().endsWith('last\n') || Buffer.from(bytes).toString().endsWith('last\n')) abort.abort()
  }
  return { sizes: pieces.map(({ length }) => length), text: Buffer.concat(pieces).toString() }
}

test('a compressed log comes in pieces of 64 KiB, never as a whole', async () => {
  const { sizes, text } = await rotatedTwice(Bun.gzipSync(Buffer.alloc(8 << 20, 'line\n')))
  expect(text.length).toBe((8 << 20) + 'first\nlast\n'.length)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(64 << 10)
})

test('a compressed log that is larger than a container writes is cut, with a note', async () => {
  const { text } = await rotatedTwice(Bun.gzipSync(Buffer.alloc(8 << 20, 'line\n')), 1 << 20)
  expect(text.length).toBeLessThan((1 << 20) + 300)
  expect(text).toContain('holds more than 1048576 bytes')
  expect(text).toEndWith('last\n')
})

test('within a folder others write to, nothing outside of it is read', async () => {
  const [inside, secret] = [join(folder, 'pods'), join(folder, 'secret')]
  mkdirSync(join(inside, 'pod'), { recursive: true })
  writeFileSync(join(inside, 'pod', '0.log'), 'log\n')
  mkdirSync(secret)
  writeFileSync(join(secret, '0.log'), 'secret\n')
  symlinkSync(join(secret, '0.log'), join(inside, 'pod', '1.log'))
  symlinkSync(secret, join(inside, 'other'))
  const read = (path: string) => Array.fromAsync(followFile({ files }, join(inside, path), {}, { below: inside }))
  expect(Buffer.concat(await read('pod/0.log')).toString()).toBe('log\n')
  for (const path of ['pod/1.log', 'other/0.log', 'pod']) await expect(read(path)).rejects.toThrow('ELOOP')
})
