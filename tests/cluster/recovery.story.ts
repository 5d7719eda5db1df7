/** A control plane that lost its data is recovered from a snapshot or a backup, and every key is as it was. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { day, newCA, newCertificate } from '../../src/pki/certificate.ts'
import { builtTool, EtcdTool, run, type StoredKey } from '../etcd/etcd-tools.ts'
import { eventually, succeeded, TestCluster } from './cluster.ts'

const cluster = new TestCluster('recovery')
/** Keeps backups of the first. */
const peer = new TestCluster('recovery-peer')
const tool = new EtcdTool(cluster)
const node = '10.73.0.2'
const peerNode = '10.71.0.2'
const snapshot = join(cluster.home, 'etcd.snapshot')
const count = 500
let before: StoredKey[] = []
let revision = 0

beforeAll(async () => {
  const age = builtTool(tool.folder, 'age', 'tests/interop/age', 'filippo.io/age/cmd/age')
  const keygen = builtTool(tool.folder, 'age-keygen', 'tests/interop/age', 'filippo.io/age/cmd/age-keygen')
  const buckets = builtTool(tool.folder, 's3', 'tests/interop/s3', '.')
  const create = (one: TestCluster, network: string) => one.create('--workers', '0', '--cidr', network)
  await Promise.all([tool.build(), age, keygen, buckets, create(cluster, '10.73.0.0/24'), create(peer, '10.71.0.0/24')])
  await tool.login(node)
})
afterAll(async () => {
  server?.kill()
  await Promise.all([cluster.end(), peer.end()])
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
const s3 = { address: '10.73.0.1:9443', accessKeyId: 'STORY', secretAccessKey: randomUUID() }
let server: Bun.Subprocess | undefined
let backup = ''

/** The lines of the list of backups that a target has. */
async function backupsIn(target: 'folder' | 'bucket' | 'peer'): Promise<string[]> {
  const { stdout } = succeeded(await cluster.talosctl('-n', node, 'etcd', 'backup', 'list'))
  return stdout.split('\n').filter((line) => line.includes(` ${target} `))
}

/** The folder target, as the host sees it. */
const folder = () => `/proc/${cluster.initOf('recovery-controlplane-1')}/root/var/mnt/backups/etcd-backups`

/** Takes a backup, and remembers what was in etcd. */
async function takeBackup(): Promise<void> {
  const { stdout } = succeeded(await cluster.talosctl('-n', node, 'etcd', 'backup', 'create'))
  const [, name = '', at] = /^(\S+\.age): revision (\d+)/.exec(stdout) ?? []
  backup = name
  revision = Number(at)
  before = await tool.keysAt(node, revision)
  expect(stdout).toContain(`total keys ${before.length},`)
  expect(stdout.trimEnd()).toEndWith('folder, bucket, peer')
}

/** A server of buckets that nobody here wrote, with a certificate of an authority of its own; returns the authority. */
function serveBuckets(): string {
  const ca = newCA({ subject: { organizations: ['story'] }, kind: 'ecdsa', now: new Date() })
  const [host = ''] = s3.address.split(':')
  const own = newCertificate({ ca, subject: { organizations: ['s3'] }, sans: { ips: [host] }, usage: ['serverAuth'], lifetime: day })
  const [crt, key] = [join(tool.folder, 's3.crt'), join(tool.folder, 's3.key')]
  writeFileSync(crt, own.crt)
  writeFileSync(key, own.key)
  const argv = [join(tool.folder, 's3'), s3.address, crt, key, s3.accessKeyId, s3.secretAccessKey]
  server = Bun.spawn(argv, { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' })
  return ca.crt
}

/** Has the other cluster keep backups of the first; returns the target for its configuration. */
async function admitSender(): Promise<object> {
  const document = {
    apiVersion: 'v1alpha1',
    kind: 'EtcdBackupStoreConfig',
    volume: 'received',
    senders: [{ name: 'recovery', maxSize: '64MiB', retention: { keepLast: 2 } }],
  }
  succeeded(await peer.talosctl('-n', peerNode, 'patch', 'mc', '-p', JSON.stringify(document)))
  const { stdout } = succeeded(await peer.talosctl('-n', peerNode, '-e', peerNode, 'etcd', 'backup', 'sender', 'recovery'))
  const [target] = (Bun.YAML.parse(stdout) as { targets: object[] }).targets
  return target ?? {}
}

test('backups are taken as soon as they are declared and on demand, and age reads them', async () => {
  succeeded(await run([join(tool.folder, 'age-keygen'), '-o', identity]))
  const recipient = succeeded(await run([join(tool.folder, 'age-keygen'), '-y', identity])).stdout.trim()
  const { accessKeyId, secretAccessKey } = s3
  const bucket = { endpoint: `https://${s3.address}`, bucket: 'backups', accessKeyId, secretAccessKey, ca: serveBuckets() }
  const document = {
    apiVersion: 'v1alpha1',
    kind: 'EtcdBackupConfig',
    schedule: '@every 1h',
    recipients: [recipient],
    retention: { keepLast: 2 },
    targets: [{ name: 'folder', folder: { volume: 'backups' } }, { name: 'bucket', s3: bucket }, await admitSender()],
  }
  succeeded(await cluster.talosctl('-n', node, 'patch', 'mc', '-p', JSON.stringify(document)))
  const counts = async () => [await backupsIn('folder'), await backupsIn('bucket'), await backupsIn('peer')].map(({ length }) => length)
  await eventually(async () => expect(await counts()).toEqual([1, 1, 1]))
  await tool.fill(node, '/backup/', count)
  await takeBackup()
  expect(before.filter(({ key }) => atob(key).startsWith('/backup/'))).toHaveLength(count)
  expect((await backupsIn('folder'))[0]).toMatch(new RegExp(`${backup}.* ${revision} .*intact`))

  const [stored, plain] = [join(tool.folder, 'backup.age'), join(tool.folder, 'backup.db')]
  succeeded(await cluster.talosctl('-n', node, 'etcd', 'backup', 'download', backup, stored))
  succeeded(await run([join(tool.folder, 'age'), '-d', '-i', identity, '-o', plain, stored]))
  const planned = succeeded(await cluster.talosctl('-n', node, 'etcd', 'restore', '--from', plain, '--dry-run'))
  expect(planned.stdout).toContain(`revision ${revision}, ${before.length} keys`)
  const logs = succeeded(await cluster.talosctl('-n', node, 'logs', 'controller-runtime')).stdout
  expect(logs).not.toContain(secretAccessKey)
})

test('another cluster keeps them: its own clients get them there, and who is not admitted is refused', async () => {
  expect((await backupsIn('peer'))[0]).toMatch(new RegExp(`${backup}.* ${revision} .*intact`))
  const [stored, kept] = [join(tool.folder, 'backup.age'), join(tool.folder, 'kept.age')]
  const listed = succeeded(await peer.talosctl('-n', peerNode, 'etcd', 'backup', 'list')).stdout
  expect(listed).toMatch(new RegExp(`sender:recovery.*${backup}.*intact`))
  succeeded(await peer.talosctl('-n', peerNode, 'etcd', 'backup', 'download', backup, kept))
  expect(readFileSync(kept)).toEqual(readFileSync(stored))

  const senders = (text: string) => peer.talosctl('-n', peerNode, 'patch', 'mc', '-p', text)
  const document = { apiVersion: 'v1alpha1', kind: 'EtcdBackupStoreConfig', $patch: 'delete' }
  succeeded(await senders(JSON.stringify(document)))
  const refused = await cluster.talosctl('-n', node, 'etcd', 'backup', 'list')
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('target "peer"')])
  expect(refused.stderr).toContain('it has no EtcdBackupStoreConfig')
  await admitSender()
  expect(await backupsIn('peer')).toHaveLength(2)
})

test('old backups are deleted; damaged and foreign ones stay and are reported', async () => {
  const [oldest = ''] = readdirSync(folder()).sort()
  const replaced = backup
  writeFileSync(join(folder(), oldest), 'damaged')
  writeFileSync(join(folder(), 'notes.txt'), 'of another')
  for (let i = 0; i < 2; i++) await takeBackup()
  const { stdout, stderr } = succeeded(await cluster.talosctl('-n', node, 'etcd', 'backup', 'list'))
  expect(stdout.split('\n').filter((line) => / folder .*intact/.test(line))).toHaveLength(2)
  expect(stdout).toMatch(new RegExp(`${oldest}.*damaged`))
  expect(stderr).toContain('folder/notes.txt is no backup of this cluster')
  expect(readdirSync(folder())).not.toContain(replaced)
  expect(await backupsIn('bucket')).toHaveLength(2)
  expect(await backupsIn('peer')).toHaveLength(2)
})

test('one command restores a cluster whose data is damaged from the other cluster, also when it is interrupted', async () => {
  writeFileSync(join(folder(), backup), 'damaged')
  const data = `/proc/${cluster.initOf('recovery-controlplane-1')}/root/var/lib/etcd/member/snap/db`
  writeFileSync(data, Buffer.alloc(1 << 20, 7))
  await cluster.talosctl('-n', node, 'service', 'etcd', 'restart')
  const restore = ['-n', node, 'etcd', 'restore', '--from', backup, '--identity', identity, '--control-plane-nodes', node]
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
  const reads = succeeded(await peer.talosctl('-n', peerNode, 'logs', 'apid')).stdout
  expect(reads).toContain('ichor.v1.EtcdBackupStoreService/Read')
  expect(await keysOfSnapshot()).toEqual(before)
  await eventually(async () => expect(succeeded(await cluster.kubectl(['get', '--raw', '/readyz'])).stdout).toBe('ok'))
  await takeBackup()
})
