import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeClock } from '../../../../src/cosi/clock.ts'
import { silent } from '../../../../src/cosi/log.ts'
import { parseSchedule } from '../../../../src/document/cron.ts'
import * as files from '../../../../src/linux/fs/files.ts'
import { Backups } from '../../../../src/os/etcd/backup/backups.ts'
import { FolderTarget } from '../../../../src/os/etcd/backup/folder-target.ts'
import { backupProblems } from '../../../../src/os/etcd/backup/problems.ts'
import type { BackupSettings } from '../../../../src/os/etcd/backup/settings.ts'
import type { BackupTarget } from '../../../../src/os/etcd/backup/target.ts'
import type { EtcdClient } from '../../../../src/os/etcd/client.ts'
import { RpcError } from '../../../../src/rpc/status.ts'
import { decrypt } from '../../../../src/wire/age/file.ts'
import { newIdentity, parseIdentity, parseRecipient, recipientOf } from '../../../../src/wire/age/keys.ts'

const { signal } = new AbortController()
const identity = parseIdentity(newIdentity())
const recipients = [parseRecipient(recipientOf(identity))]
let home = ''
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'backups-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

/** A database of 1024 bytes with the hash at its end. */
const database = Buffer.alloc(1024, 5)
const snapshot = Buffer.concat([database, createHash('sha256').update(database).digest()])

/** An etcd, the tools of a node, and its targets; everything that may go wrong is a field. */
function nodeOf({ etcd = { keys: new Map<string, string>() } as { keys: Map<string, string> } } = {}) {
  const state = {
    now: Date.parse('2026-01-01T00:00:00Z'),
    snapshot: snapshot as Buffer,
    restoredHash: 77,
    available: 1e12,
    broken: new Set<string>(),
    full: false,
    commands: [] as string[],
    events: [] as { action: number; target: string; error: string }[],
  }
  const client = {
    status: async () => ({ dbSize: 1024 }),
    async *snapshot() {
      for (let at = 0; at < state.snapshot.length; at += 500) yield state.snapshot.subarray(at, at + 500)
    },
    hashKv: async () => ({ hash: 77, compactRevision: 1, hashRevision: 9 }),
    get: async (key: string) => etcd.keys.get(key),
    put: async (key: string, value: string) => void etcd.keys.set(key, value),
    async claim(name: string, holder: string) {
      if (state.full) throw new RpcError('ResourceExhausted', 'etcdserver: mvcc: database space exceeded')
      if (!etcd.keys.has(name)) etcd.keys.set(name, holder)
      return etcd.keys.get(name)
    },
    release: async (name: string) => void etcd.keys.delete(name),
    close() {},
  } as unknown as EtcdClient
  // The scratch folder of the machine is a folder of the test.
  const inside = (path: string) => (path.startsWith('/var/lib/etcd-backup') ? join(home, path) : path)
  const own = {
    ...files,
    mkdirAll: (path: string, options?: files.Ownership) => files.mkdirAll(inside(path), options),
    openWrite: (path: string, options: { mode?: number | undefined } = {}) =>
      files.openWrite(inside(path), { mode: options.mode ?? 0o644 }),
    readSlice: (path: string, offset: number, length: number) => files.readSlice(inside(path), offset, length),
    remove: (path: string) => files.remove(inside(path)),
    syncFile: (path: string) => files.syncFile(inside(path)),
    statfs: (path: string) => ({ ...files.statfs(existsSync(inside(path)) ? inside(path) : home), available: state.available }),
  }
  const backups = new Backups({
    clock: makeClock({
      now: () => new Date(state.now),
      elapsed: () => state.now,
      sleep: (_, end) => new Promise((resolve) => end?.addEventListener('abort', () => resolve())),
    }),
    log: silent,
    files: own,
    local: () => client,
    async etcdutl([first = '', second = '']) {
      state.commands.push(first === 'snapshot' ? `${first} ${second}` : first)
      if (second === 'status') return 'noise\n{"hash":1,"revision":9,"totalKey":4,"totalSize":1024}\n'
      return first === 'hashkv' ? `{"hash":${state.restoredHash},"hashRevision":9,"compactRevision":1}` : ''
    },
    publish: (event) => state.events.push(event),
  })
  const target = (name: string): BackupTarget => {
    const folder = join(home, name)
    mkdirSync(folder, { recursive: true })
    return new FolderTarget(
      { name, cluster: '0a0b0c0d', folder, missing: () => (state.broken.has(name) ? 'the disk is gone' : undefined) },
      own,
    )
  }
  const settings: BackupSettings = {
    schedule: parseSchedule('@every 1h') ?? { next: (after) => after },
    recipients,
    identity: undefined,
    retention: { keepLast: 2, maxAge: undefined },
    targets: [target('one'), target('two')],
    cluster: '0a0b0c0d',
  }
  backups.configure(settings)
  const round = (after = 0) => {
    state.now += after
    return backups.round('a', signal, () => {})
  }
  return { backups, state, settings, round, etcd, held: (name: string) => readdirSync(join(home, name)) }
}

const minute = 60_000
const hour = 60 * minute

test('the first backup is taken at once, verified, encrypted, and stored in every target', async () => {
  const { state, round, held, backups, settings, etcd } = nodeOf()
  await round()
  expect(state.commands).toEqual(['snapshot status', 'snapshot restore', 'hashkv'])
  const [name = ''] = held('one')
  expect(held('two')).toEqual([name])
  expect(name).toMatch(/^etcd-0a0b0c0d-20260101T000000Z-r9-[0-9a-f]{16}\.age$/)
  const stored = readFileSync(join(home, 'one', name))
  const chunks = async function* () {
    yield stored
  }
  expect(Buffer.concat(await Array.fromAsync(decrypt(chunks(), [identity])))).toEqual(snapshot)
  expect(existsSync(join(home, '/var/lib/etcd-backup'))).toBe(false)
  expect(backups.status(settings)).toMatchObject({
    state: 'waiting',
    lastSuccess: { name, node: 'a', revision: 9 },
    nextRun: '2026-01-01T01:00:00.000Z',
  })
  expect(state.events).toMatchObject([{ action: 0 }])
  expect([...etcd.keys.keys()]).toEqual(['ichor:etcd:backup:last'])
})

test('the next one is taken when it is due, by one control plane', async () => {
  const one = nodeOf()
  const other = nodeOf({ etcd: one.etcd })
  await one.round()
  await other.round()
  expect(other.state.commands).toEqual([])
  await one.round(59 * minute)
  expect(one.held('one')).toHaveLength(1)
  await one.round(minute)
  await one.round(hour)
  expect(one.held('one')).toHaveLength(2)
  expect(one.state.events.filter(({ action }) => action === 2)).toHaveLength(2)
})

test('while another control plane holds the claim nothing is taken, and that is no failure', async () => {
  const node = nodeOf()
  node.etcd.keys.set('ichor:etcd:backup', 'b')
  await node.round()
  expect([node.state.commands, node.state.events]).toEqual([[], []])
  await expect(node.backups.create('a', signal)).rejects.toThrow('b takes a backup of etcd at the moment')
})

test('a target that fails is tried again with the same backup, later each time', async () => {
  const node = nodeOf()
  node.state.broken.add('two')
  await node.round()
  const [name = ''] = node.held('one')
  expect(node.held('two')).toEqual([])
  const status = node.backups.status(node.settings)
  expect(status).toMatchObject({ state: 'failed', lastSuccess: { name }, lastError: { target: 'two', message: 'the disk is gone' } })
  expect(backupProblems(status, node.backups.listing, new Date(node.state.now)).map(({ id }) => id)).toEqual(['etcd-backup-failed'])
  await node.round(minute)
  expect(node.state.events.map(({ action }) => action)).toEqual([1, 1])
  node.state.broken.clear()
  await node.round(minute)
  expect(node.held('two')).toEqual([])
  await node.round(minute)
  expect(node.held('two')).toEqual([name])
  expect(node.backups.status(node.settings).state).toBe('waiting')
  expect(node.state.commands).toHaveLength(3)
})

for (const [what, change, reason] of [
  ['a snapshot that is cut off', { snapshot: snapshot.subarray(0, 900) }, 'is cut off'],
  ['a damaged snapshot', { snapshot: Buffer.concat([Buffer.alloc(1024, 6), snapshot.subarray(1024)]) }, 'damaged snapshot'],
  ['a restore with other keys', { restoredHash: 78 }, 'differs from etcd at revision 9'],
  ['a full disk', { available: 1000 }, 'of space left'],
] as const)
  test(`${what} is no backup: it is reported, and tried again`, async () => {
    const node = nodeOf()
    const before = { ...node.state }
    Object.assign(node.state, change)
    await node.round()
    expect(node.held('one')).toEqual([])
    expect(existsSync(join(home, '/var/lib/etcd-backup'))).toBe(false)
    expect(node.backups.status(node.settings).lastError?.message).toContain(reason)
    Object.assign(node.state, { snapshot: before.snapshot, restoredHash: before.restoredHash, available: before.available })
    await node.round(minute)
    expect(node.held('one')).toHaveLength(1)
  })

test('a full etcd is backed up on demand', async () => {
  const node = nodeOf()
  node.state.full = true
  await node.round()
  expect(node.backups.status(node.settings).lastError?.message).toContain('space exceeded')
  const { backup, stored } = await node.backups.create('a', signal)
  expect(stored).toEqual(['one', 'two'])
  expect((await node.backups.find(backup.name, signal)).target.name).toBe('one')
  await expect(node.backups.find('etcd-x', signal)).rejects.toThrow('no target of this node has "etcd-x"')
})

test('a backup that nobody takes is overdue after half an hour', () => {
  const status = { state: 'waiting', nextRun: '2026-01-01T00:00:00.000Z', foreign: [] } as const
  const at = (time: string) =>
    backupProblems({ ...status, foreign: [] }, { backups: [], failures: [], foreign: [] }, new Date(time)).map(({ id }) => id)
  expect([at('2026-01-01T00:29:00Z'), at('2026-01-01T00:31:00Z')]).toEqual([[], ['etcd-backup-overdue']])
})

test('a record that cannot be read is none', async () => {
  const node = nodeOf()
  node.etcd.keys.set('ichor:etcd:backup:last', '{"time":1}')
  await node.round()
  expect(node.held('one')).toHaveLength(1)
})

test('without a declaration none is taken', async () => {
  const node = nodeOf()
  node.backups.configure(undefined)
  await node.round()
  expect(node.state.commands).toEqual([])
  await expect(node.backups.create('a', signal)).rejects.toThrow('apply an EtcdBackupConfig first')
})
