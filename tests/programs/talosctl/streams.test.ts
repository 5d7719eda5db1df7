import { afterAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { ownEvents } from '../../../src/rpc/caller-metadata.ts'
import { packAny } from '../../../src/rpc/client/any.ts'
import { serverStream } from '../../../src/rpc/server/method.ts'
import { RpcError } from '../../../src/rpc/status.ts'
import { node, talosctl } from './peer.ts'

const admins = ['os:admin'] as const
const folder = mkdtempSync(join(tmpdir(), 'ichor-streams-'))
afterAll(() => rmSync(folder, { recursive: true }))

const log = (...chunks: [string, string][]) =>
  serverStream('machine.MachineService/Logs', admins, async function* () {
    for (const [hostname, text] of chunks) yield { metadata: { hostname }, bytes: Buffer.from(text) }
  })

test('log lines are whole and carry their node, wherever the chunks end', async () => {
  const { stdout } = await talosctl([log([node, 'one\ntw'], ['10.6.0.3', 'eins\n'], [node, 'o\nlast without end'])], ['logs', 'apid'])
  expect(stdout).toBe(`${node}: one\n10.6.0.3: eins\n${node}: two\n${node}: last without end\n`)
})

test('a letter cut in two by a chunk is put together', async () => {
  const bytes = Buffer.from('grün\n')
  const method = serverStream('machine.MachineService/Logs', admins, async function* () {
    yield { bytes: bytes.subarray(0, 3) }
    yield { bytes: bytes.subarray(3) }
  })
  expect((await talosctl([method], ['logs', 'apid'])).stdout).toBe(`${node}: grün\n`)
})

test('the requested logs follow the flags', async () => {
  const requests: unknown[] = []
  const method = serverStream('machine.MachineService/Logs', admins, async function* (request) {
    requests.push(request)
    yield { bytes: Buffer.from('\n') }
  })
  await talosctl([method], ['logs', 'kubelet'])
  await talosctl([method], ['logs', '-k', 'kube-system/x:y', '--tail', '5', '-f'])
  expect(requests).toEqual([
    { namespace: 'system', id: 'kubelet', driver: 0, follow: false, tailLines: -1 },
    { namespace: 'k8s.io', id: 'kube-system/x:y', driver: 1, follow: true, tailLines: 5 },
  ])
})

test('the log of the start before is a method of its own, and not followed', async () => {
  const requests: unknown[] = []
  const method = serverStream('ichor.v1.LogService/Previous', admins, async function* (request) {
    requests.push(request)
    yield { bytes: Buffer.from('last words\n') }
  })
  expect((await talosctl([method], ['logs', 'kubelet', '--previous', '--tail', '1'])).stdout).toBe(`${node}: last words\n`)
  expect(requests).toEqual([{ id: 'kubelet', tailLines: 1 }])
  expect((await talosctl([method], ['logs', 'kubelet', '--previous', '-f'])).code).toBe(1)
})

test('one of several nodes failing is reported while the others go on', async () => {
  const method = serverStream('machine.MachineService/Logs', admins, async function* () {
    yield { metadata: { hostname: '10.6.0.3', error: 'rpc error: code = Unavailable desc = gone', status: { code: 14, message: 'gone' } } }
    yield { metadata: { hostname: node }, bytes: Buffer.from('here\n') }
  })
  const { code, stdout, stderr } = await talosctl([method], ['logs', 'apid'], { nodes: [node, '10.6.0.3'] })
  expect({ code, stdout, stderr }).toEqual({
    code: 1,
    stdout: `${node}: here\n`,
    stderr: 'ERROR: rpc error: code = Unavailable desc = gone\n',
  })
})

test('dmesg carries the node', async () => {
  const method = serverStream('machine.MachineService/Dmesg', admins, async function* (request) {
    expect(request).toEqual({ follow: true, tail: true })
    yield { bytes: Buffer.from('kern: info: hello\n') }
  })
  expect((await talosctl([method], ['dmesg', '-f', '--tail'])).stdout).toBe(`${node}: kern: info: hello\n`)
})

test('events are one line each, with who and what', async () => {
  const event = (id: string, name: string, payload: object) => ({ id, data: packAny(name, payload, 'talos/runtime/') })
  const method = serverStream('machine.MachineService/Events', admins, async function* (request, { metadata }) {
    expect(request).toEqual({ tailEvents: 20, tailId: '', tailSeconds: 300, withActorId: '' })
    expect(metadata[ownEvents]).toEqual(['1'])
    yield { id: 'dc0mggdnre2s73cvfcc0', data: { type_url: '', value: new Uint8Array() } }
    yield event('dc0mggdnre2s73cvfccg', 'machine.ServiceStateEvent', {
      service: 'etcd',
      action: 5,
      message: 'Service finished successfully',
    })
    yield event('dc0mgglnre2s73cvfcgg', 'machine.MachineStatusEvent', {
      stage: 1,
      status: { ready: false, unmetConditions: [{ name: 'services' }, { name: 'nodeReady' }] },
    })
    yield event('dc0mghlnre2s73cvfcjg', 'machine.PhaseEvent', { phase: 'startEverything', action: 1 })
  })
  const { stdout } = await talosctl([method], ['events', '--tail', '20', '--since', '5m'])
  const cells = stdout.split('\n').map((line) => line.split(/ {3,}/))
  expect(cells).toEqual([
    ['NODE', 'ID', 'EVENT', 'ACTOR', 'SOURCE', 'MESSAGE'],
    [node, 'dc0mggdnre2s73cvfccg', 'talos/runtime/machine.ServiceStateEvent', 'etcd', 'FINISHED: Service finished successfully'],
    [
      node,
      'dc0mgglnre2s73cvfcgg',
      'talos/runtime/machine.MachineStatusEvent',
      'BOOTING',
      'ready: false, unmet conditions: [services nodeReady]',
    ],
    [node, 'dc0mghlnre2s73cvfcjg', 'talos/runtime/machine.PhaseEvent', 'startEverything', 'STOP'],
    [''],
  ])
})

test('a file is written to standard output as it is, from one node only', async () => {
  const method = serverStream('machine.MachineService/Read', admins, async function* ({ path }) {
    if (path !== '/etc/x') throw new RpcError('NotFound', `open "${path}": ENOENT`)
    yield { bytes: Buffer.from('first ') }
    yield { bytes: Buffer.from('second') }
  })
  expect(await talosctl([method], ['read', '/etc/x'])).toEqual({ code: 0, stdout: 'first second', stderr: '' })
  expect((await talosctl([method], ['cat', '/nope'])).stderr).toBe('rpc error: code = NotFound desc = open "/nope": ENOENT\n')
  expect((await talosctl([method], ['cat', '/etc/x', '-n', 'a,b'])).stderr).toBe(
    'command "read" is not supported with multiple nodes: name one with --nodes, there are a, b\n',
  )
})

/** A .tar.gz made by the tar of this machine. */
function archive(name: string): Buffer {
  const source = join(folder, 'source')
  mkdirSync(join(source, 'sub'), { recursive: true })
  writeFileSync(join(source, 'plain'), 'content', { mode: 0o640 })
  writeFileSync(join(source, 'sub', 'n'.repeat(150)), 'x'.repeat(100_000))
  rmSync(join(source, 'link'), { force: true })
  symlinkSync('plain', join(source, 'link'))
  Bun.spawnSync(['tar', '-C', source, '--format=pax', '--mtime=2026-01-02T03:04:05Z', '-czf', join(folder, name), '.'])
  return readFileSync(join(folder, name))
}

const copying = (bytes: Uint8Array) =>
  serverStream('machine.MachineService/Copy', admins, async function* () {
    for (let at = 0; at < bytes.length; at += 1000) yield { bytes: bytes.subarray(at, at + 1000) }
  })

test('a folder is copied with names, modes, times and links', async () => {
  const target = join(folder, 'copied')
  const { code, stderr } = await talosctl([copying(archive('a.tgz'))], ['copy', '/source', target])
  expect([code, stderr]).toEqual([0, ''])
  expect(readdirSync(target).toSorted()).toEqual(['link', 'plain', 'sub'])
  expect(readlinkSync(join(target, 'link'))).toBe('plain')
  expect(statSync(join(target, 'plain')).mode & 0o777).toBe(0o640)
  expect(statSync(join(target, 'plain')).mtime.toISOString()).toBe('2026-01-02T03:04:05.000Z')
  expect(statSync(join(target, 'sub', 'n'.repeat(150))).size).toBe(100_000)
})

test('an error behind an archive is one, and what came is laid out', async () => {
  const target = join(folder, 'partly')
  const method = serverStream('machine.MachineService/Copy', admins, async function* () {
    yield { bytes: archive('d.tgz') }
    yield { metadata: { hostname: node, error: '1 error occurred:\n\t* skipping "/x": gone\n\n' } }
  })
  const failed = `1 error occurred:\n\t* ${node}: 1 error occurred:\n\t* skipping "/x": gone\n`
  const { code, stderr } = await talosctl([method], ['copy', '/source', target])
  expect([code, stderr.replaceAll(/\n+/g, '\n')]).toEqual([1, failed])
  expect(readdirSync(target).toSorted()).toEqual(['link', 'plain', 'sub'])
  const raw = await talosctl([method], ['copy', '/source', '-'])
  expect([raw.code, raw.stderr.replaceAll(/\n+/g, '\n')]).toEqual([1, failed])
})

test('a copy never writes over a file that is there', async () => {
  const target = join(folder, 'taken')
  mkdirSync(target)
  writeFileSync(join(target, 'plain'), 'mine')
  const { code, stderr } = await talosctl([copying(archive('c.tgz'))], ['copy', '/source', target])
  expect([code, stderr]).toEqual([1, `"${join(target, 'plain')}" is there already: remove it, or copy into an empty folder\n`])
  expect(readFileSync(join(target, 'plain'), 'utf8')).toBe('mine')
})

test('an archive that is cut off is a failure', async () => {
  const { code, stderr } = await talosctl([copying(archive('b.tgz').subarray(0, 300))], ['cp', '/source', join(folder, 'cut')])
  expect(code).toBe(1)
  expect(stderr).toContain('unexpected end of file')
})

test('a copy to standard output is the archive itself', async () => {
  const { stdout } = await talosctl([copying(Buffer.from('raw bytes'))], ['copy', '/x', '-'])
  expect(stdout).toBe('raw bytes')
})

const snapshotting = (bytes: Uint8Array) =>
  serverStream('machine.MachineService/EtcdSnapshot', admins, async function* () {
    for (let at = 0; at < bytes.length; at += 1500) yield { bytes: bytes.subarray(at, at + 1500) }
  })

test('an etcd snapshot is saved when it is whole, and what is in it is printed', async () => {
  const snapshot = gunzipSync(readFileSync(join(import.meta.dir, '../../wire/bolt/etcd-3.6.16.snapshot.gz')))
  const path = join(folder, 'etcd.db')
  const { code, stdout } = await talosctl([snapshotting(snapshot)], ['etcd', 'snapshot', path])
  expect([code, stdout]).toEqual([
    0,
    `etcd snapshot saved to "${path}" (57376 bytes)\nsnapshot info: hash 13bb3e4e, revision 302, total keys 299, total size 57344\n`,
  ])
  expect(statSync(path).size).toBe(57376)
})

test('a damaged or cut snapshot leaves no file', async () => {
  const path = join(folder, 'bad.db')
  const damaged = await talosctl([snapshotting(Buffer.alloc(4128))], ['etcd', 'snapshot', path])
  expect([damaged.code, damaged.stderr.slice(0, 20)]).toEqual([1, 'snapshot is damaged:'])
  const database = Buffer.alloc(4096, 'no database')
  const other = Buffer.concat([database, createHash('sha256').update(database).digest()])
  expect((await talosctl([snapshotting(other)], ['etcd', 'snapshot', path])).stderr).toBe(
    'snapshot is damaged: decode bolt database at 0: no valid meta page; try again\n',
  )
  const cut = await talosctl([snapshotting(Buffer.alloc(4000))], ['etcd', 'snapshot', path])
  expect([cut.code, cut.stderr]).toEqual([1, 'snapshot of 4000 bytes has no hash at its end: it is not whole, try again\n'])
  expect(readdirSync(folder).filter((name) => name.startsWith('bad'))).toEqual([])
})

const kubeconfigText = (user: string) => `apiVersion: v1
kind: Config
clusters:
- name: ichor
  cluster:
    server: https://10.6.0.2:6443
    certificate-authority-data: Y2E=
users:
- name: admin@ichor
  user:
    token: ${user}
contexts:
- name: admin@ichor
  context:
    cluster: ichor
    user: admin@ichor
current-context: admin@ichor
`

const kubeconfig = (user: string) =>
  serverStream('machine.MachineService/Kubeconfig', admins, async function* () {
    const source = join(folder, 'kubeconfig-source')
    mkdirSync(source, { recursive: true })
    writeFileSync(join(source, 'kubeconfig'), kubeconfigText(user))
    yield { bytes: Bun.spawnSync(['tar', '-C', source, '-cz', 'kubeconfig']).stdout }
  })

test('kubeconfig goes to standard output, to a file, and is merged without losing what is there', async () => {
  const path = join(folder, 'kube', 'config')
  expect((await talosctl([kubeconfig('a')], ['kubeconfig', '-'])).stdout).toBe(kubeconfigText('a'))
  expect((await talosctl([kubeconfig('a')], ['kubeconfig', path])).code).toBe(0)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  const merged = await talosctl([kubeconfig('b')], ['kubeconfig', path])
  expect(merged.stderr).toContain('renamed context "admin@ichor" to "admin@ichor-1"')
  expect(readFileSync(path, 'utf8')).toContain('token: a')
  await talosctl([kubeconfig('c')], ['kubeconfig', path, '--force'])
  const text = readFileSync(path, 'utf8')
  expect([text.includes('token: a'), text.includes('token: b'), text.includes('token: c')]).toEqual([false, true, true])
  const refused = await talosctl([kubeconfig('d')], ['kubeconfig', path, '--merge=false'])
  expect([refused.code, refused.stderr]).toEqual([
    1,
    `kubeconfig file "${path}" exists already: use --force to overwrite it, or another path\n`,
  ])
})

test('kubeconfig follows $KUBECONFIG', async () => {
  const path = join(folder, 'from-env')
  await talosctl([kubeconfig('e')], ['kubeconfig', '--force-context-name', 'mine'], { env: { KUBECONFIG: `${path}:/nonexistent` } })
  expect(readFileSync(path, 'utf8')).toContain('current-context: mine')
})
