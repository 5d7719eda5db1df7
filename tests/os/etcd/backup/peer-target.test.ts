/** Backups between two clusters: the target of one, and the store of the other behind a real apid with its certificates. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeClock } from '../../../../src/cosi/clock.ts'
import { silent } from '../../../../src/cosi/log.ts'
import { Store } from '../../../../src/cosi/store.ts'
import * as files from '../../../../src/linux/fs/files.ts'
import { etcdBackupStore, etcdIssueSender } from '../../../../src/os/etcd/api/backup-store.ts'
import { PeerTarget, peerPlace } from '../../../../src/os/etcd/backup/peer-target.ts'
import type { TakenBackup } from '../../../../src/os/etcd/backup/target.ts'
import { ReceivedBackups } from '../../../../src/os/etcd/received/received-backups.ts'
import type { SenderLimits, StoreSettings } from '../../../../src/os/etcd/received/settings.ts'
import { backupName } from '../../../../src/os/etcd/resources/backup-name.ts'
import { OSRootSecret } from '../../../../src/os/secrets/resources/os-root-secret.ts'
import { toBase64 } from '../../../../src/pki/certificate.ts'
import { Gateway } from '../../../../src/programs/apid/gateway.ts'
import { type Server, serveUnix } from '../../../../src/rpc/server/server.ts'
import { authority, identityOf } from '../../../programs/apid/nodes.ts'
import { freePort } from '../../../support/free-port.ts'

const cluster = '0a0b0c0d'
const { signal } = new AbortController()
const limits: SenderLimits = { maxSize: 4 << 20, hourly: 5, retention: { keepLast: 2, maxAge: undefined } }
const clock = makeClock({ now: () => new Date('2026-01-01T00:00:00Z'), elapsed: () => 0 })
let home = ''
let senders: Map<string, SenderLimits>
let declared = true
let received: ReceivedBackups
let server: Server
let gateway: Gateway
let port = 0
const events: string[] = []

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'peer-'))
  senders = new Map([['away', limits]])
  declared = true
  events.length = 0
  received = new ReceivedBackups({
    clock,
    log: silent,
    files,
    settings: (): StoreSettings | undefined => (declared ? { volume: 'backups', folder: join(home, 'volume'), senders } : undefined),
    missing: () => undefined,
    publish: ({ action, name, target }) => events.push(`${action} ${target}/${name}`),
  })
  const store = new Store()
  const acceptedCAs = [{ crt: toBase64(authority.crt) }]
  const issuingCA = { crt: toBase64(authority.crt), key: toBase64(authority.key) }
  store.put(OSRootSecret, 'os', { issuingCA, acceptedCAs, certSANIPs: [], certSANDNSNames: [], token: '' })
  const socket = join(home, 'machine.sock')
  server = await serveUnix({ path: socket }, { methods: [...etcdBackupStore(received), etcdIssueSender], store, log: silent })
  port = await freePort()
  gateway = new Gateway({ host: '127.0.0.1', port, backend: socket, remotePort: port, log: silent })
  await gateway.become(identityOf('127.0.0.1', 'controlplane'))
  issue = (sender) => {
    const context = { store, metadata: {} } as never
    const { messages } = etcdIssueSender.handle({ sender, lifetime: null } as never, context) as {
      messages: { ca: Buffer; crt: Buffer; key: Buffer }[]
    }
    const [{ ca, crt, key }] = messages as [{ ca: Buffer; crt: Buffer; key: Buffer }]
    return { ca: ca.toString('base64'), crt: crt.toString('base64'), key: key.toString('base64') }
  }
})
afterEach(async () => {
  await gateway.close()
  await server.close()
  rmSync(home, { recursive: true, force: true })
})

let issue: (sender: string) => { ca: string; crt: string; key: string }
const direct = { proxy: () => undefined }

function target(sender = 'away', endpoints = [`127.0.0.1:${port}`], read: Pick<typeof files, 'readSlice'> = files): PeerTarget {
  return new PeerTarget({ name: 'peer', cluster, ...peerPlace({ endpoints, ...issue(sender) }, direct) }, read)
}

/** A backup with so many bytes. */
function taken(revision: number, size = 700_000, time = '2026-01-01T00:00:00Z'): TakenBackup {
  const content = Buffer.alloc(size, revision)
  const path = join(home, `${revision}.age`)
  writeFileSync(path, content)
  const sha256 = createHash('sha256').update(content).digest('hex')
  const named = { cluster, taken: new Date(time), revision, hash: sha256.slice(0, 16) }
  return { ...named, name: backupName(named), path, size, sha256, keys: 1 }
}

const folder = () => join(home, 'volume/away')
const bytesOf = async (peer: PeerTarget, name: string) => Buffer.concat(await Array.fromAsync(peer.read(name, signal)))

test('a backup is stored at the peer whole, listed there as intact, and read back', async () => {
  const [peer, backup] = [target(), taken(1)]
  expect(await peer.contents(signal)).toEqual({ backups: [], foreign: [], problems: [] })
  await peer.store(backup, signal)
  await peer.store(backup, signal)
  expect((await peer.contents(signal)).backups).toMatchObject([{ name: backup.name, revision: 1, size: backup.size, state: 'intact' }])
  expect(await bytesOf(peer, backup.name)).toEqual(readFileSync(backup.path))
  expect(readdirSync(folder())).toEqual([backup.name])
  expect(events).toEqual([`0 sender:away/${backup.name}`])
  expect((await received.list(signal)).backups).toMatchObject([{ target: 'sender:away', name: backup.name }])
  expect(Buffer.concat(await Array.fromAsync((await received.find(backup.name, signal))!))).toEqual(readFileSync(backup.path))
})

test('a backup whose upload was cut off is not listed, and only the rest of it is sent', async () => {
  const backup = taken(1)
  const cut = async (path: string, at: number, length: number) => {
    if (at > 300_000) throw new Error('the disk is gone')
    return files.readSlice(path, at, length)
  }
  await expect(target('away', undefined, { readSlice: cut }).store(backup, signal)).rejects.toThrow('the disk is gone')
  const peer = target()
  expect((await peer.contents(signal)).backups).toEqual([])
  expect(readdirSync(folder())).toEqual([`.${backup.name}.part`])
  const read: number[] = []
  const counted = (path: string, at: number, length: number) => {
    read.push(at)
    return files.readSlice(path, at, length)
  }
  await target('away', undefined, { readSlice: counted }).store(backup, signal)
  expect(read[0]).toBeGreaterThan(0)
  expect(await bytesOf(peer, backup.name)).toEqual(readFileSync(backup.path))
})

test('what arrives with other contents is deleted, and can be sent again', async () => {
  const backup = taken(1)
  const wrong = { readSlice: async (path: string, at: number, length: number) => (await files.readSlice(path, at, length)).map(() => 9) }
  await expect(target('away', undefined, wrong as never).store(backup, signal)).rejects.toThrow('other contents than were announced')
  expect(readdirSync(folder())).toEqual([])
  await target().store(backup, signal)
  expect(readdirSync(folder())).toEqual([backup.name])
})

test('the peer keeps as many as it declares, and the sender can delete none', async () => {
  const peer = target()
  const all = [1, 2, 3].map((revision) => taken(revision))
  for (const backup of all) await peer.store(backup, signal)
  expect((await peer.contents(signal)).backups.map(({ revision }) => revision).sort()).toEqual([2, 3])
  await expect(peer.store(all[0]!, signal)).rejects.toThrow('is older than what is kept')
  await expect(peer.remove(all[1]!.name)).rejects.toThrow('deletes old backups itself')
  // A damaged one is never deleted.
  truncateSync(join(folder(), all[1]!.name), 5)
  await peer.store(taken(4), signal)
  await peer.store(taken(5), signal)
  expect((await peer.contents(signal)).backups.map(({ revision, state }) => [revision, state]).sort()).toEqual([
    [2, 'damaged'],
    [4, 'intact'],
    [5, 'intact'],
  ])
})

test('nobody is admitted who is not declared, and everybody sees only what is theirs', async () => {
  const backup = taken(1)
  await target().store(backup, signal)
  await expect(target('stranger').store(backup, signal)).rejects.toThrow('"stranger" is not among the senders')
  senders.set('other', limits)
  expect(await target('other').contents(signal)).toEqual({ backups: [], foreign: [], problems: [] })
  await expect(bytesOf(target('other'), backup.name)).rejects.toThrow(`it has no "${backup.name}"`)
  senders.clear()
  await expect(target().contents(signal)).rejects.toThrow('"away" is not among the senders')
  declared = false
  await expect(target().contents(signal)).rejects.toThrow('it has no EtcdBackupStoreConfig')
})

test.each([
  ['one that is too large', () => taken(1, (4 << 20) + 1), 'at most 4194304 are taken'],
  ['one from the future', () => taken(1, 10, '2026-01-01T02:00:00Z'), 'compare the clocks'],
  ['one of another name', () => ({ ...taken(1), name: 'etcd.age' }), 'is not the name of a backup'],
  ['one whose name has another hash', () => ({ ...taken(1), sha256: '0'.repeat(64) }), 'does not begin its hash'],
  ['one without contents', () => taken(1, 0), 'has no size'],
] as const)('%s is refused', async (_, make, message) => {
  await expect(target().store(make(), signal)).rejects.toThrow(message)
  await expect(Promise.resolve().then(() => readdirSync(folder()))).rejects.toThrow('ENOENT')
})

test('a sender is limited to so many new backups an hour, and one upload at a time', async () => {
  const peer = target()
  for (const revision of [1, 2, 3, 4, 5]) await peer.store(taken(revision, 10), signal)
  await expect(peer.store(taken(6, 10), signal)).rejects.toThrow('5 new backups an hour')
  senders.set('away', { ...limits, hourly: 6 })
  const { name, size, sha256 } = taken(7)
  await received.offer('away', { name, size, sha256 }, signal)
  const held = Promise.withResolvers<Uint8Array>()
  const uploading = received.append(
    'away',
    { name, offset: 0 },
    (async function* () {
      yield await held.promise
    })(),
    signal,
  )
  await expect(peer.store(taken(8, 10), signal)).rejects.toThrow('another upload of this sender')
  held.resolve(new Uint8Array(size + 1))
  await expect(uploading).rejects.toThrow('more bytes were sent')
  await expect(received.append('away', { name: 'x', offset: 0 }, (async function* () {})(), signal)).rejects.toThrow('was not offered')
})

test('the first endpoint that takes it gets a backup, one that does not answer is reported', async () => {
  const closed = `127.0.0.1:${await freePort()}`
  const peer = target('away', [closed, `127.0.0.1:${port}`])
  const backup = taken(1)
  await peer.store(backup, signal)
  const { backups, problems = [] } = await peer.contents(signal)
  expect([backups.length, problems.length, problems[0]]).toEqual([1, 1, expect.stringContaining(closed)])
  expect(await bytesOf(peer, backup.name)).toEqual(readFileSync(backup.path))
  await expect(target('away', [closed]).store(backup, signal)).rejects.toThrow(closed)
})
