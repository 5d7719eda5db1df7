import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as files from '../../../../src/linux/fs/files.ts'
import { FolderTarget } from '../../../../src/os/etcd/backup/folder-target.ts'
import type { TakenBackup } from '../../../../src/os/etcd/backup/target.ts'
import { backupName } from '../../../../src/os/etcd/resources/backup-name.ts'

let home = ''
const { signal } = new AbortController()
const cluster = '0a0b0c0d'
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'backup-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const place = (missing?: string) => ({ name: 'folder', cluster, folder: join(home, 'volume/backups'), missing: () => missing })

function taken(content: string, revision = 1): TakenBackup {
  const path = join(home, 'backup.age')
  writeFileSync(path, content)
  const sha256 = createHash('sha256').update(content).digest('hex')
  const named = { cluster, taken: new Date('2026-01-01T00:00:00Z'), revision, hash: sha256.slice(0, 16) }
  return { ...named, name: backupName(named), path, size: content.length, sha256, keys: 1 }
}

test('a backup is stored under its name, readable by root only, and is listed as intact', async () => {
  const target = new FolderTarget(place(), files)
  expect(await target.contents(signal)).toEqual({ backups: [], foreign: [] })
  const backup = taken('content')
  await target.store(backup, signal)
  expect(readdirSync(place().folder)).toEqual([backup.name])
  expect(statSync(join(place().folder, backup.name)).mode & 0o777).toBe(0o600)
  const { backups } = await target.contents(signal)
  expect(backups).toMatchObject([{ name: backup.name, revision: 1, size: 7, state: 'intact' }])
  expect(Buffer.concat(await Array.fromAsync(target.read(backup.name, signal))).toString()).toBe('content')
  await target.remove(backup.name)
  expect(readdirSync(place().folder)).toEqual([])
})

test('what was changed is damaged; other files and backups of other clusters are foreign', async () => {
  const target = new FolderTarget(place(), files)
  const backup = taken('content')
  await target.store(backup, signal)
  writeFileSync(join(place().folder, backup.name), 'changed')
  const other = backup.name.replace(cluster, 'ffffffff')
  writeFileSync(join(place().folder, other), '')
  mkdirSync(join(place().folder, 'folder'))
  const found = await target.contents(signal)
  expect(found.backups).toMatchObject([{ name: backup.name, state: 'damaged' }])
  expect(found.foreign).toEqual([other, 'folder'])
})

test('what a power cut left half written is removed by the next backup, and is nobody’s', async () => {
  const target = new FolderTarget(place(), files)
  const backup = taken('content')
  mkdirSync(place().folder, { recursive: true })
  writeFileSync(join(place().folder, `.${backup.name}.part`), 'con')
  expect(await target.contents(signal)).toEqual({ backups: [], foreign: [] })
  await target.store(backup, signal)
  expect(readdirSync(place().folder)).toEqual([backup.name])
})

test('nothing is written without the volume, without room, or through a link', async () => {
  const backup = taken('content')
  await expect(new FolderTarget(place('volume "x" is not mounted'), files).store(backup, signal)).rejects.toThrow('is not mounted')
  const full = { ...files, statfs: (path: string) => ({ ...files.statfs(path), available: 1 << 20 }) }
  await expect(new FolderTarget(place(), full).store(backup, signal)).rejects.toThrow('has 1.0 MiB of space left')
  rmSync(place().folder, { recursive: true })
  mkdirSync(join(home, 'elsewhere'))
  symlinkSync(join(home, 'elsewhere'), place().folder)
  await expect(new FolderTarget(place(), files).store(backup, signal)).rejects.toThrow('leads elsewhere')
  expect(readdirSync(join(home, 'elsewhere'))).toEqual([])
})

test('a disk that returns other bytes, or an error, leaves nothing behind', async () => {
  const backup = taken('content')
  const failing = {
    ...files,
    readSlice: async (path: string, offset: number, length: number) =>
      path.endsWith('.part') && offset === 0 ? Buffer.from('other') : files.readSlice(path, offset, length),
  }
  await expect(new FolderTarget(place(), failing).store(backup, signal)).rejects.toThrow('its disk is failing')
  const broken = { ...files, syncFile: async () => Promise.reject(new Error('sync: EIO')) }
  await expect(new FolderTarget(place(), broken).store(backup, signal)).rejects.toThrow('EIO')
  expect(readdirSync(place().folder)).toEqual([])
  await expect(new FolderTarget(place(), files).store(backup, AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped')
  expect(readFileSync(backup.path, 'utf8')).toBe('content')
})
