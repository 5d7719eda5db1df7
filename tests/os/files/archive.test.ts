import { afterAll, expect, test } from 'bun:test'
import { linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as files from '../../../src/linux/files.ts'
import { archive } from '../../../src/os/files/archive.ts'

const folder = mkdtempSync(join(tmpdir(), 'archive-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('what is packed comes out of tar as it was: contents, modes, times, links, long names', async () => {
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
