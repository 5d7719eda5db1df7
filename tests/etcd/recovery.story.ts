/**
 * Clusters of three control planes of which two lost their data: recovered from a snapshot of the survivor step by step, then by one
 * command that is killed twice, then from a database that was copied out of a data folder. Every key is read back each time.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, succeeded, TestCluster } from '../cluster/cluster.ts'
import { figure } from '../support/figures.ts'
import { EtcdTool, type StoredKey, withHistory } from './etcd-tools.ts'
import { etcdOf } from './robustness/faults.ts'

const cluster = new TestCluster('recovery3')
const tool = new EtcdTool(cluster)
const [first, second, third] = ['10.74.0.2', '10.74.0.3', '10.74.0.4'] as const
const nodes = [first, second, third]
const nameOf = (node: string) => cluster.nodes().find(({ ip }) => ip === node)?.name ?? ''
const snapshot = join(cluster.home, 'etcd.snapshot')
/** A database as it lay in a data folder. */
const database = join(cluster.home, 'db')
const count = 10_000
const number = count.toLocaleString('en')
/** What etcd had when the snapshot was taken, and before the second recovery. */
let before: StoredKey[] = []
let later: StoredKey[] = []
let [revision, laterRevision] = [0, 0]

beforeAll(async () => {
  await Promise.all([tool.build(), cluster.create('--controlplanes', '3', '--workers', '0', '--cidr', '10.74.0.0/24', ...withHistory)])
  await tool.login(first)
})
afterAll(async () => {
  await cluster.destroy()
  cluster.close()
  tool.close()
})

/** Deletes the data of nodes, as after the loss of their disks. */
async function loseData(...lost: readonly string[]): Promise<void> {
  await Promise.all(
    lost.map(async (node) => {
      const init = cluster.initOf(nameOf(node))
      const flags = ['--graceful=false', '--system-labels-to-wipe', 'EPHEMERAL', '--reboot', '--wait=false']
      succeeded(await cluster.talosctl('-n', node, 'reset', ...flags))
      await eventually(async () => expect(cluster.initOf(nameOf(node))).not.toBe(init), 180)
      const etcd = async () => (await cluster.talosctl('-n', node, 'service', 'etcd')).stdout
      await eventually(async () => expect(await etcd()).toContain('to be bootstrapped'), 180)
    }),
  )
}

/** Half of the cluster is destroyed: two of three at the same time, so that neither joins the others again. */
async function loseTwo(): Promise<void> {
  const pid = etcdOf(cluster, { name: nameOf(first) })
  process.kill(pid, 'SIGSTOP')
  try {
    await loseData(second, third)
  } finally {
    process.kill(pid, 'SIGCONT')
  }
}

const below = (keys: readonly StoredKey[], prefix: string) => keys.filter(({ key }) => atob(key).startsWith(prefix))

/** Three voting members, each with every key as it was at a revision, and a Kubernetes that writes. */
async function expectWhole(keys: readonly StoredKey[], at: number, since: () => void): Promise<void> {
  await eventually(async () => {
    const members = await tool.members([first])
    expect(members.map(({ isLearner }) => isLearner === true)).toEqual([false, false, false])
  }, 300)
  since()
  for (const node of nodes) expect(await tool.keysAt(node, at)).toEqual([...keys])
  await eventually(async () => expect(succeeded(await cluster.kubectl(['get', '--raw', '/readyz'])).stdout).toBe('ok'), 180)
  const written = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `after-${at}` } }
  await eventually(async () => succeeded(await cluster.kubectl(['apply', '-f', '-'], JSON.stringify(written))), 60)
}

const seconds = (began: number) => `${((performance.now() - began) / 1000).toFixed(1)} s`

test('the survivor without a majority still gives a snapshot of every key', async () => {
  await tool.fill(first, '/story/', count)
  await loseTwo()
  const { stdout } = succeeded(await cluster.talosctl('-n', first, 'etcd', 'snapshot', snapshot))
  revision = Number(/revision (\d+)/.exec(stdout)?.[1])
  before = await tool.keysAt(first, revision, { alone: true })
  expect(stdout).toContain(`total keys ${before.length},`)
  const written = Array.from({ length: count }, (_, i) => `/story/${i}=value-${i}`)
  expect(
    below(before, '/story/')
      .map(({ key, value }) => `${atob(key)}=${atob(value)}`)
      .toSorted(),
  ).toEqual(written.toSorted())
})

test('a recovery is refused on the survivor, which has data, and with a snapshot that is damaged', async () => {
  const data = await cluster.talosctl('-n', first, 'bootstrap', '--recover-from', snapshot)
  expect([data.code, data.stderr]).toEqual([1, expect.stringContaining('etcd has data on this node already')])
  const bytes = Buffer.from(readFileSync(snapshot))
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1
  writeFileSync(`${snapshot}.damaged`, bytes)
  const damaged = await cluster.talosctl('-n', second, 'bootstrap', '--recover-from', `${snapshot}.damaged`)
  expect([damaged.code, damaged.stderr]).toEqual([1, expect.stringContaining('the snapshot is damaged')])
})

test('the snapshot becomes the cluster on one node, with every key, and the others join it', async () => {
  await loseData(first)
  const began = performance.now()
  succeeded(await cluster.talosctl('-n', first, 'bootstrap', '--recover-from', snapshot))
  expect(await eventually(() => tool.keysAt(first, revision))).toEqual(before)
  figure('recovery', `bootstrap --recover-from: every key of ${number} and Kubernetes' own is read back`, seconds(began))
  await expectWhole(before, revision, () => figure('recovery', 'bootstrap --recover-from: three voting members', seconds(began)))
  figure('recovery', 'bootstrap --recover-from: the API server takes a write', seconds(began))
})

/** Runs a restore until it prints this, then kills it. */
async function killedAt(words: string, ...args: readonly string[]): Promise<void> {
  const child = cluster.start(...args)
  let text = ''
  for await (const chunk of child.stderr) {
    text += Buffer.from(chunk).toString()
    if (text.includes(words)) break
  }
  child.kill('SIGKILL')
  await child.exited
  expect(text).toContain(words)
}

test('one command restores the cluster from the snapshot when two lost their data again, though it is killed twice', async () => {
  await tool.fill(first, '/later/', count)
  laterRevision = JSON.parse(await tool.etcdctl([first], ['get', '/later/0', '-w', 'json'])).header.revision
  later = await tool.keysAt(first, laterRevision)
  expect(below(later, '/later/')).toHaveLength(count)
  await loseTwo()
  const restore = ['etcd', 'restore', '--from', snapshot]
  const planned = await cluster.talosctl(...restore)
  expect([planned.code, planned.stderr]).toEqual([1, expect.stringContaining('add --yes to do it')])
  expect(planned.stdout).toMatch(new RegExp(`^${first}: discards .* of etcd, restarts$`, 'm'))
  expect(planned.stdout).toMatch(new RegExp(`^${second}: has no data of etcd, restarts$`, 'm'))
  expect(await tool.keysAt(first, laterRevision, { alone: true })).toEqual(later)

  const began = performance.now()
  await killedAt('etcd is stopped', ...restore, '--yes')
  await killedAt('started again', ...restore, '--yes')
  const { stderr } = succeeded(await cluster.talosctl(...restore, '--yes'))
  expect(stderr).toContain('continuing the restore that was interrupted')
  expect(stderr).toContain('etcd has 3 members\nKubernetes answers\netcd is restored\n')
  figure('recovery', 'etcd restore, killed twice: three voting members, and Kubernetes answers', seconds(began))
  await expectWhole(before, revision, () => {})
  expect(below(await tool.keysAt(first, 0), '/later/')).toEqual([])
})

test('the database that the restore had replaced is restored in turn, without its hash only on request', async () => {
  copyFileSync(`/proc/${cluster.initOf(nameOf(first))}/root/var/lib/etcd.replaced/member/snap/db`, database)
  const restore = ['etcd', 'restore', '--from', database, '--yes']
  const refused = await cluster.talosctl(...restore)
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('add --skip-hash-check')])
  const began = performance.now()
  succeeded(await cluster.talosctl(...restore, '--skip-hash-check'))
  figure('recovery', 'etcd restore --skip-hash-check: three voting members, and Kubernetes answers', seconds(began))
  await expectWhole(later, laterRevision, () => {})
})
