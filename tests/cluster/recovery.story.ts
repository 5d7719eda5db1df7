/** A control plane that lost its data is recovered from a snapshot, and every key is as it was. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { EtcdTool, type StoredKey } from '../etcd/etcd-tools.ts'
import { eventually, succeeded, TestCluster } from './cluster.ts'

const cluster = new TestCluster('recovery')
const tool = new EtcdTool(cluster)
const node = '10.73.0.2'
const snapshot = join(cluster.home, 'etcd.snapshot')
const count = 500
let before: StoredKey[] = []
let revision = 0

beforeAll(async () => {
  await Promise.all([tool.build(), cluster.create('--workers', '0', '--cidr', '10.73.0.0/24')])
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
