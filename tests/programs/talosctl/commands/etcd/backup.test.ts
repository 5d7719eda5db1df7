import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { backupName } from '../../../../../src/os/etcd/resources/backup-name.ts'
import type { RestoreState } from '../../../../../src/programs/talosctl/etcd/restore-state.ts'
import { type Method, serverStream, unary } from '../../../../../src/rpc/server/method.ts'
import { RpcError } from '../../../../../src/rpc/status.ts'
import { encrypt } from '../../../../../src/wire/age/file.ts'
import { newIdentity, parseIdentity, parseRecipient, recipientOf } from '../../../../../src/wire/age/keys.ts'
import { talosctl } from '../../peer.ts'

const admins = ['os:admin'] as const
let home = ''
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'restore-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const run = (methods: readonly Method[], ...args: string[]) =>
  talosctl(methods, ['etcd', ...args], { env: { TALOS_HOME: home, HOME: home } })

const identity = newIdentity()
const database = gunzipSync(readFileSync(join(import.meta.dir, '../../../../wire/bolt/etcd-3.6.16.snapshot.gz')))
const snapshot = Buffer.concat([database, ...(database.length % 512 === 0 ? [createHash('sha256').update(database).digest()] : [])])
async function* chunksOf(bytes: Uint8Array) {
  for (let at = 0; at < bytes.length; at += 10_000) yield bytes.subarray(at, at + 10_000)
}
const encrypted = Buffer.concat(await Array.fromAsync(encrypt(chunksOf(snapshot), [parseRecipient(recipientOf(parseIdentity(identity)))])))
const taken = new Date('2026-11-20T10:00:00Z')
const hash = createHash('sha256').update(encrypted).digest('hex').slice(0, 16)
const name = backupName({ cluster: '0a0b0c0d', taken, revision: 7, hash })

const held = { target: 'disk', name, taken: { seconds: taken.getTime() / 1000, nanos: 0 }, revision: 7, size: 4096, state: 1 }

test('backups of each node are listed; what is foreign and what failed is reported', async () => {
  const list = unary('ichor.v1.EtcdBackupService/List', admins, () => ({
    messages: [
      { metadata: { hostname: '10.6.0.2' }, backups: [held], foreign: ['disk/notes.txt'] },
      { metadata: { hostname: '10.6.0.3' }, backups: [], errors: [{ target: 'disk', message: 'volume "x" is not mounted' }] },
    ],
  }))
  const { code, stdout, stderr } = await run([list], 'backup', 'list')
  expect(stdout).toBe(`\
NODE       TARGET   NAME                                                     TAKEN                  REVISION   SIZE     STATE
10.6.0.2   disk     ${name}   2026-11-20T10:00:00Z   7          4.1 kB   intact
`)
  expect(stderr).toContain('10.6.0.2: disk/notes.txt is no backup of this cluster, it is left alone\n')
  expect(stderr).toContain('10.6.0.3: target "disk": volume "x" is not mounted\n')
  expect(code).toBe(1)
})

test('a backup that one target refused is one that failed', async () => {
  const create = unary('ichor.v1.EtcdBackupService/Create', admins, () => ({
    messages: [{ name, revision: 7, keys: 3, size: 4096, targets: ['disk'], errors: [{ target: 's3', message: 'no answer' }] }],
  }))
  const { code, stdout, stderr } = await run([create], 'backup', 'create')
  expect([code, stdout]).toEqual([1, `${name}: revision 7, total keys 3, 4.1 kB, stored in disk\n`])
  expect(stderr).toContain('target "s3": no answer')
})

/** A control plane that has a backup, and data of etcd. */
function controlPlane(stored = encrypted) {
  const calls: string[] = []
  const methods = [
    unary('cosi.resource.State/Get', admins, () => ({
      resource: { spec: { yamlSpec: JSON.stringify('version: v1alpha1\nmachine: {type: controlplane}\ncluster: {id: the-cluster}\n') } },
    })),
    unary('ichor.v1.EtcdBackupService/Discard', admins, ({ dryRun }) => {
      calls.push(dryRun ? 'dry run' : 'discard')
      return { messages: [{ data: true, size: 1_000_000 }] }
    }),
    serverStream('ichor.v1.EtcdBackupService/Fetch', admins, async function* (request) {
      calls.push(`fetch${request.decrypt ? ' decrypted' : ''}`)
      if (request.decrypt) throw new RpcError('FailedPrecondition', 'this node has no identity')
      for await (const bytes of chunksOf(stored)) yield { bytes }
    }),
  ]
  return { calls, methods }
}
const node = ['--control-plane-nodes', '10.6.0.2']

test('a dry run verifies the backup, shows the plan, and leaves nothing behind', async () => {
  const { calls, methods } = controlPlane()
  const keys = join(home, 'identity')
  writeFileSync(keys, `# a comment\n${identity}\n`)
  const { code, stdout } = await run(methods, 'restore', '--from', name, '--identity', keys, ...node, '--dry-run')
  expect(stdout).toContain(`snapshot "${name}": revision 302, 299 keys, `)
  expect(stdout).toContain('10.6.0.2: discards 1.0 MB of etcd, restarts\n10.6.0.2: is bootstrapped from the snapshot\n')
  expect([code, calls, readdirSync(join(home, 'restores'))]).toEqual([0, ['fetch', 'dry run'], []])
})

test('without --yes nothing is changed', async () => {
  const { calls, methods } = controlPlane()
  const file = join(home, 'db.snapshot')
  writeFileSync(file, snapshot)
  const { code, stderr } = await run(methods, 'restore', '--from', file, ...node)
  expect(stderr).toContain('add --yes to do it')
  expect([code === 0, calls, existsSync(join(home, 'restores/the-cluster.json'))]).toEqual([false, ['dry run'], false])
})

test.each([
  ['without an identity', async () => [], 'this node has no identity'],
  ['with the identity of another', async () => identityFile(newIdentity()), 'it is encrypted to others'],
  ['with a file that is no identity', async () => identityFile('nothing'), 'is no identity file of age'],
  ['with a file that is not there', async () => ['--identity', join(home, 'none')], 'there is no such file'],
])('a backup is not restored %s', async (_, flags, message) => {
  const { calls, methods } = controlPlane()
  const { code, stderr } = await run(methods, 'restore', '--from', name, ...node, '--yes', ...(await flags()))
  expect(stderr).toContain(message)
  expect([code === 0, calls.includes('discard')]).toEqual([false, false])
})

function identityFile(text: string): string[] {
  writeFileSync(join(home, 'identity'), text)
  return ['--identity', join(home, 'identity')]
}

test('a damaged backup, and a name of nothing, are refused before anything is changed', async () => {
  const { calls, methods } = controlPlane(Buffer.concat([encrypted.subarray(0, -1), Buffer.of((encrypted.at(-1) ?? 0) ^ 1)]))
  const damaged = await run(methods, 'restore', '--from', name, ...node, '--yes', ...identityFile(identity))
  expect(damaged.stderr).toMatch(/is damaged/)
  const unknown = await run(methods, 'restore', '--from', 'nothing', ...node, '--yes')
  expect(unknown.stderr).toContain('is neither a file nor the name of a backup')
  expect(calls).not.toContain('discard')
})

describe('a database without the hash of a snapshot', () => {
  const file = () => join(home, 'db')
  const restore = async (bytes: Uint8Array, from: string, ...flags: string[]) => {
    const { calls, methods } = controlPlane()
    writeFileSync(file(), bytes)
    return { calls, ...(await run(methods, 'restore', '--from', from, ...node, ...flags)) }
  }

  test('is refused, and taken on request', async () => {
    const refused = await restore(snapshot.subarray(0, -32), file(), '--yes')
    expect(refused.stderr).toContain('has no hash at its end: it is cut off; if it was copied')
    expect(refused.stderr).toContain('add --skip-hash-check')
    expect(refused.calls).toEqual([])
    const { code, stdout } = await restore(snapshot.subarray(0, -32), file(), '--dry-run', '--skip-hash-check')
    expect([code, stdout]).toEqual([0, expect.stringContaining('revision 302, 299 keys')])
  })

  test('is still read, and a hash that is there is compared', async () => {
    const half = await restore(snapshot.subarray(0, 8 * 4096), file(), '--yes', '--skip-hash-check')
    expect([half.code, half.stderr]).toEqual([1, expect.stringContaining('snapshot is damaged')])
    const changed = Buffer.from(snapshot)
    changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1
    const different = await restore(changed, file(), '--yes', '--skip-hash-check')
    expect([different.code, different.stderr]).toEqual([1, expect.stringContaining('snapshot is damaged: its hash is')])
  })

  test('is no backup of a target, which has its hash in its name', async () => {
    const { code, stderr } = await restore(snapshot, name, '--yes', '--skip-hash-check')
    expect([code, stderr]).toEqual([1, expect.stringContaining('--skip-hash-check goes with a file')])
  })
})

test('while one restore is interrupted no other begins', async () => {
  const { calls, methods } = controlPlane()
  const state: RestoreState = { from: 'another', nodes: ['10.6.0.2'], step: 'restart', hashless: false, boots: {} }
  await Bun.write(join(home, 'restores/the-cluster.json'), JSON.stringify(state))
  const { stderr } = await run(methods, 'restore', '--from', name, ...node, '--yes')
  expect(stderr).toContain('a restore from "another" was interrupted')
  expect(calls).toEqual([])
})

test('the target for another cluster is printed with the endpoints of this one', async () => {
  let request: unknown
  const issue = unary('ichor.v1.EtcdBackupStoreService/IssueSender', admins, ({ sender, lifetime }) => {
    request = { sender, seconds: lifetime?.seconds }
    return { messages: [{ ca: Buffer.from('authority'), crt: Buffer.from('certificate'), key: Buffer.from('key') }] }
  })
  const { code, stdout } = await run([issue], 'backup', 'sender', 'production', '--crt-ttl', '720h')
  expect([code, request]).toEqual([0, { sender: 'production', seconds: 720 * 3600 }])
  const { targets } = Bun.YAML.parse(stdout) as { targets: { name: string; peer: Record<string, unknown> }[] }
  expect(targets).toHaveLength(1)
  expect(targets[0]?.peer).toMatchObject({ ca: btoa('authority'), crt: btoa('certificate'), key: btoa('key') })
  expect(targets[0]?.peer.endpoints).toEqual([expect.any(String)])
})
