import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Build, Builds } from '../../../src/programs/factory/build/builds.ts'
import { writeFile } from '../../../src/programs/factory/build/write-file.ts'
import { FactoryError } from '../../../src/programs/factory/factory-error.ts'
import { newFolder } from './served.ts'

const kibibyte = 1024
/** Writes so many bytes. */
const of =
  (size: number): Build =>
  async (path) =>
    writeFileSync(path, Buffer.alloc(size, 1))

test('what is requested twice at a time is built once, and is found again after a start', async () => {
  const folder = newFolder()
  const builds = new Builds(folder)
  let built = 0
  const build: Build = async (path, signal) => {
    built++
    await of(10)(path, signal)
  }
  const paths = await Promise.all([builds.take(['a', 'b'], build), builds.take(['a', 'b'], build)])
  expect(await builds.take(['a', 'b'], build)).toBe(paths[0])
  expect([paths[0] === paths[1], built]).toEqual([true, 1])
  writeFileSync(join(folder, `${'a'.repeat(64)}.new`), 'half')
  expect(await new Builds(folder).take(['a', 'b'], build)).toBe(paths[0])
  expect([built, readdirSync(folder)]).toEqual([1, [expect.stringMatching(/^[0-9a-f]{64}$/)]])
  builds.close()
  expect(existsSync(folder)).toBe(true)
})

test('the file that was not needed for the longest time makes room', async () => {
  const builds = new Builds(newFolder(), 64 * kibibyte)
  const take = (name: string) => builds.take([name], of(24 * kibibyte))
  const [a, b] = [await take('a'), await take('b')]
  await take('a')
  const c = await take('c')
  expect([a, b, c].map(existsSync)).toEqual([true, false, true])
  await expect(builds.take(['large'], of(65 * kibibyte))).rejects.toThrow('--cache-size allows 65536')
  expect([a, c].map(existsSync)).toEqual([true, true])
})

test('files of an earlier start make room in the order in which they were built', async () => {
  const folder = newFolder()
  const earlier = new Builds(folder, 64 * kibibyte)
  const [a, b] = [await earlier.take(['a'], of(24 * kibibyte)), await earlier.take(['b'], of(24 * kibibyte))]
  utimesSync(a, 2000, 2000)
  utimesSync(b, 1000, 1000)
  await new Builds(folder, 64 * kibibyte).take(['c'], of(24 * kibibyte))
  expect([a, b].map(existsSync)).toEqual([true, false])
})

test('builds at a time and those that wait are bounded, and a failed one makes room for the next', async () => {
  const builds = new Builds()
  let running = 0
  let most = 0
  const gate = Promise.withResolvers<void>()
  const slow: Build = async () => {
    most = Math.max(most, ++running)
    await gate.promise
    running--
    throw new FactoryError(400, 'refused')
  }
  const all = Array.from({ length: 68 }, (_, at) => builds.take([`${at}`], slow).catch((error: FactoryError) => error.status))
  await expect(builds.take(['one more'], slow)).rejects.toThrow('too many images are being built')
  gate.resolve()
  expect(new Set(await Promise.all(all))).toEqual(new Set([400]))
  expect(most).toBe(4)
  const path = await builds.take(['0'], of(1))
  expect(existsSync(path)).toBe(true)
  builds.close()
  expect(existsSync(path)).toBe(false)
})

test('a file is written of its parts, and one that ends early is not', async () => {
  const folder = newFolder()
  mkdirSync(folder, { recursive: true })
  const [source, target] = [join(folder, 'source'), join(folder, 'target')]
  writeFileSync(source, Buffer.concat([Buffer.alloc(3 << 20), Buffer.from('end')]))
  const { signal } = new AbortController()
  await writeFile(target, [{ bytes: Buffer.from('start') }, { file: source, offset: 1 << 20, length: (2 << 20) + 3 }], signal)
  const written = readFileSync(target)
  expect(written.equals(Buffer.concat([Buffer.from('start'), Buffer.alloc(2 << 20), Buffer.from('end')]))).toBe(true)
  await expect(writeFile(target, [{ file: source, offset: 3 << 20, length: 4 }], signal)).rejects.toThrow('ends before byte')
  await expect(writeFile(target, [{ bytes: Buffer.alloc(1) }], AbortSignal.abort(new Error('late')))).rejects.toThrow('late')
})
