/** A cluster of three control planes, of which two lost their data, is recovered from a snapshot of the survivor. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { eventually, succeeded, TestCluster } from '../cluster/cluster.ts'
import { figure } from '../support/figures.ts'
import { EtcdTool, type StoredKey } from './etcd-tools.ts'

const cluster = new TestCluster('recovery3')
const tool = new EtcdTool(cluster)
const [first, second, third] = ['10.74.0.2', '10.74.0.3', '10.74.0.4'] as const
const nameOf = (node: string) => cluster.nodes().find(({ ip }) => ip === node)?.name ?? ''
const snapshot = join(cluster.home, 'etcd.snapshot')
const count = 10_000
let before: StoredKey[] = []
let revision = 0

beforeAll(async () => {
  await Promise.all([tool.build(), cluster.create('--controlplanes', '3', '--workers', '0', '--cidr', '10.74.0.0/24')])
  await tool.login(first)
})
afterAll(async () => {
  await cluster.destroy()
  cluster.close()
  tool.close()
})

async function loseData(node: string): Promise<void> {
  const init = cluster.initOf(nameOf(node))
  const flags = ['--graceful=false', '--system-labels-to-wipe', 'EPHEMERAL', '--reboot', '--wait=false']
  succeeded(await cluster.talosctl('-n', node, 'reset', ...flags))
  await eventually(async () => expect(cluster.initOf(nameOf(node))).not.toBe(init))
  await eventually(async () => expect((await cluster.talosctl('-n', node, 'service', 'etcd')).stdout).toContain('to be bootstrapped'))
}

test('the survivor without a majority still gives a snapshot of every key', async () => {
  await tool.fill(first, '/story/', count)
  await Promise.all([loseData(second), loseData(third)])
  const { stdout } = succeeded(await cluster.talosctl('-n', first, 'etcd', 'snapshot', snapshot))
  revision = Number(/revision (\d+)/.exec(stdout)?.[1])
  expect(Number(/total keys (\d+)/.exec(stdout)?.[1])).toBeGreaterThan(count)
})

test('the snapshot becomes the cluster on one node, with every key, and the others join it', async () => {
  await loseData(first)
  const began = performance.now()
  const since = () => `${((performance.now() - began) / 1000).toFixed(1)} s`
  succeeded(await cluster.talosctl('-n', first, 'bootstrap', '--recover-from', snapshot))
  before = await eventually(() => tool.keysAt(first, revision))
  figure('recovery', `every key of ${count.toLocaleString('en')} and Kubernetes' own is read back`, since())
  expect(before.filter(({ key }) => atob(key).startsWith('/story/'))).toHaveLength(count)
  await eventually(async () => {
    const { members } = JSON.parse(await tool.etcdctl([first], ['member', 'list', '-w', 'json']))
    expect(members.map(({ isLearner }: { isLearner?: boolean }) => isLearner === true)).toEqual([false, false, false])
  }, 180)
  figure('recovery', 'three voting members', since())
  for (const node of [second, third]) expect(await tool.keysAt(node, revision)).toEqual(before)
  await eventually(async () => expect(succeeded(await cluster.kubectl(['get', '--raw', '/readyz'])).stdout).toBe('ok'))
  figure('recovery', 'the API server is ready', since())
  for (const { value, key } of before.filter(({ key }) => atob(key).startsWith('/story/')))
    expect(atob(value)).toBe(`value-${atob(key).slice('/story/'.length)}`)
})
