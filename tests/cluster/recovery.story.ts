/** A control plane that lost its data is recovered from a snapshot or a backup, and every key is as it was. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { builtTool, EtcdTool, run, type StoredKey } from '../etcd/etcd-tools.ts'
import { eventually, succeeded, TestCluster } from './cluster.ts'

const cluster = new TestCluster('recovery')
const tool = new EtcdTool(cluster)
const node = '10.73.0.2'
const snapshot = join(cluster.home, 'etcd.snapshot')
const count = 500
let before: StoredKey[] = []
let revision = 0

beforeAll(async () => {
  const age = builtTool(tool.folder, 'age', 'tests/interop/age', 'filippo.io/age/cmd/age')
  const keygen = builtTool(tool.folder, 'age-keygen', 'tests/interop/age', 'filippo.io/age/cmd/age-keygen')
  await Promise.all([tool.build(), age, keygen, cluster.create('--workers', '0', '--cidr', '10.73.0.0/24')])
  await tool.login(node)
})
afterAll(async () => {
  await cluster.destroy()
  cluster.close()
  tool.close()
})

/** Deletes the node's data, as after the loss of its disk. */
async function loseData(): Promise<void> {
  const flags = ['--graceful=false', '--system-labels-to-wipe', 'EPHEMERAL', '--reboot', '--wait=false']
  const init = cluster.initOf('recovery-controlplane-1')
  succeeded(await cluster.talosctl('-n', node, 'reset', ...flags))
  await eventually(async () => expect(cluster.initOf('recovery-controlplane-1')).not.toBe(init))
  await eventually(async () => expect((await cluster.talosctl('-n', node, 'service', 'etcd')).stdout).toContain('to be bootstrapped'))
}

const recover = (file: string, ...flags: string[]) => cluster.talosctl('-n', node, 'bootstrap', '--recover-from', file, ...flags)

/** The keys that etcd has now, as they were when the snapshot was taken. */
const keysOfSnapshot = () => eventually(async () => tool.keysAt(node, revision))

test('a snapshot is taken of everything that was written', async () => {
  await tool.fill(node, '/story/', count)
  const { stdout } = succeeded(await cluster.talosctl('-n', node, 'etcd', 'snapshot', snapshot))
  revision = Number(/revision (\d+)/.exec(stdout)?.[1])
  before = await tool.keysAt(node, revision)
  expect(before.filter(({ key }) => atob(key).startsWith('/story/'))).toHaveLength(count)
  expect(stdout).toContain(`total keys ${before.length},`)
})

test('a recovery is refused where there is data', async () => {
  const refused = await recover(snapshot)
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain('etcd has data on this node already')
})

test('without its hash a snapshot is recovered only on request, and brings every key back', async () => {
  await loseData()
  const copied = join(cluster.home, 'db')
  writeFileSync(copied, readFileSync(snapshot).subarray(0, -32))
  const refused = await recover(copied)
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain('--recover-skip-hash-check')
  succeeded(await recover(copied, '--recover-skip-hash-check'))
  expect(await keysOfSnapshot()).toEqual(before)
})

test('a damaged snapshot is refused, the whole one brings every key and the cluster back', async () => {
  await loseData()
  const damaged = Buffer.from(readFileSync(snapshot))
  damaged[damaged.length >> 1] = (damaged[damaged.length >> 1] ?? 0) ^ 1
  writeFileSync(`${snapshot}.damaged`, damaged)
  const refused = await recover(`${snapshot}.damaged`)
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain('the snapshot is damaged')
  succeeded(await recover(snapshot))
  expect(await keysOfSnapshot()).toEqual(before)
  await eventually(async () => expect(succeeded(await cluster.kubectl(['get', '--raw', '/readyz'])).stdout).toBe('ok'))
})

const identity = join(tool.folder, 'identity')
const backupsOf = async () => {
  const { stdout } = succeeded(await cluster.talosctl('-n', node, 'etcd', 'backup', 'list'))
  return stdout.split('\n').filter((line) => line.includes(' folder '))
}
const place = () => `/proc/${cluster.initOf('recovery-controlplane-1')}/root/var/mnt/backups/etcd-backups`
let backup = ''

test('backups are taken as soon as they are declared and on demand, and age reads them', async () => {
  succeeded(await run([join(tool.folder, 'age-keygen'), '-o', identity]))
  const recipient = succeeded(await run([join(tool.folder, 'age-keygen'), '-y', identity])).stdout.trim()
  const document = `apiVersion: v1alpha1
kind: EtcdBackupConfig
schedule: "@every 1h"
recipients: [${recipient}]
retention: {keepLast: 2}
targets: [{name: folder, folder: {volume: backups}}]
`
  succeeded(await cluster.talosctl('-n', node, 'patch', 'mc', '-p', document))
  await eventually(async () => expect(await backupsOf()).toHaveLength(1))
  await tool.fill(node, '/backup/', count)
  const created = succeeded(await cluster.talosctl('-n', node, 'etcd', 'backup', 'create')).stdout
  backup = /^(\S+\.age): revision (\d+)/.exec(created)?.[1] ?? ''
  revision = Number(/revision (\d+)/.exec(created)?.[1])
  before = await tool.keysAt(node, revision)
  expect(created).toContain(`total keys ${before.length},`)
  expect(before.filter(({ key }) => atob(key).startsWith('/backup/'))).toHaveLength(count)
  expect((await backupsOf())[0]).toMatch(new RegExp(`${backup}.* ${revision} .*intact`))

  const [stored, plain] = [join(tool.folder, 'backup.age'), join(tool.folder, 'backup.db')]
  succeeded(await cluster.talosctl('-n', node, 'etcd', 'backup', 'download', backup, stored))
  succeeded(await run([join(tool.folder, 'age'), '-d', '-i', identity, '-o', plain, stored]))
  const planned = succeeded(await cluster.talosctl('-n', node, 'etcd', 'restore', '--from', plain, '--dry-run'))
  expect(planned.stdout).toContain(`revision ${revision}, ${before.length} keys`)
})

test('old backups are deleted; damaged and foreign ones stay and are reported', async () => {
  const [oldest = ''] = readdirSync(place()).sort()
  writeFileSync(join(place(), oldest), 'damaged')
  writeFileSync(join(place(), 'notes.txt'), 'of somebody else')
  for (let i = 0; i < 2; i++) succeeded(await cluster.talosctl('-n', node, 'etcd', 'backup', 'create'))
  const { stdout, stderr } = succeeded(await cluster.talosctl('-n', node, 'etcd', 'backup', 'list'))
  expect(stdout.split('\n').filter((line) => line.includes('intact'))).toHaveLength(2)
  expect(stdout).toMatch(new RegExp(`${oldest}.*damaged`))
  expect(stderr).toContain('folder/notes.txt is no backup of this cluster')
  expect(readdirSync(place())).not.toContain(backup)
  // The file that was downloaded has its name from here on.
  backup = join(tool.folder, 'backup.age')
})

test('one command restores a cluster whose data is damaged, also when it is interrupted', async () => {
  const data = `/proc/${cluster.initOf('recovery-controlplane-1')}/root/var/lib/etcd/member/snap/db`
  writeFileSync(data, Buffer.alloc(1 << 20, 7))
  await cluster.talosctl('-n', node, 'service', 'etcd', 'restart')
  const restore = ['etcd', 'restore', '--from', backup, '--identity', identity, '--control-plane-nodes', node]
  const refused = await cluster.talosctl(...restore)
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain('add --yes to do it')

  const interrupted = cluster.start(...restore, '--yes')
  for await (const chunk of interrupted.stderr) if (Buffer.from(chunk).includes('etcd is stopped')) break
  interrupted.kill('SIGKILL')
  await interrupted.exited

  const { stderr } = succeeded(await cluster.talosctl(...restore, '--yes'))
  expect(stderr).toContain('continuing the restore that was interrupted')
  expect(stderr).toContain('etcd is restored')
  expect(await keysOfSnapshot()).toEqual(before)
  await eventually(async () => expect(succeeded(await cluster.kubectl(['get', '--raw', '/readyz'])).stdout).toBe('ok'))
  // Backups go on, and what they are stored in was left alone.
  succeeded(await cluster.talosctl('-n', node, 'etcd', 'backup', 'create'))
  expect((await backupsOf()).length).toBeGreaterThan(2)
  rmSync(identity)
})
