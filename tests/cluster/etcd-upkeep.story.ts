/** A real etcd with a small quota: its free space is given back, and when it is full it becomes writable again by itself. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { EtcdTool } from '../etcd/etcd-tools.ts'
import { eventually, succeeded, TestCluster } from './cluster.ts'

const cluster = new TestCluster('upkeep')
const tool = new EtcdTool(cluster)
const node = '10.75.0.2'
const quota = 128 * 1024 * 1024
const value = 'x'.repeat(1024 * 1024)

beforeAll(async () => {
  const patch = JSON.stringify({ cluster: { etcd: { extraArgs: { 'quota-backend-bytes': String(quota) } } } })
  await Promise.all([tool.build(), cluster.create('--workers', '0', '--cidr', '10.75.0.0/24', '--config-patch-control-plane', patch)])
  await tool.login(node)
})
afterAll(async () => {
  await cluster.destroy()
  cluster.close()
  tool.close()
})

interface MemberStatus {
  header: { revision: number }
  dbSize: number
  dbSizeInUse: number
}
const status = async (): Promise<MemberStatus> =>
  JSON.parse(await tool.etcdctl([node], ['endpoint', 'status', '-w', 'json']))[0].Status as MemberStatus
/** Overwrites one key with a mebibyte: all but the last are history. */
const write = () => tool.etcdctl([node], ['put', '/story/large'], value)
const upkeep = async (path: string) =>
  succeeded(await cluster.talosctl('-n', node, 'get', 'etcdupkeep', 'etcd', '-o', `jsonpath={${path}}`)).stdout.trim()

test('a database of which more than half is free is defragmented', async () => {
  for (let i = 0; i < 72; i++) await write()
  const { header, dbSize } = await status()
  expect(dbSize).toBeGreaterThan(64 * 1024 * 1024)
  await tool.etcdctl([node], ['compact', '--physical', String(header.revision)])
  await eventually(async () => expect((await status()).dbSize).toBeLessThan(32 * 1024 * 1024))
  await eventually(async () => expect(await upkeep('.spec.defragmented.member')).toBe('upkeep-controlplane-1'))
})

test('an etcd that is full refuses writes, and accepts them again after a while', async () => {
  const refused = async () => {
    for (let i = 0; i < 200; i++) await write()
  }
  await expect(refused()).rejects.toThrow('database space exceeded')
  await eventually(write)
  expect((await status()).dbSize).toBeLessThan(64 * 1024 * 1024)
  expect(await tool.etcdctl([node], ['alarm', 'list'])).toBe('')
  await eventually(async () => expect(await upkeep('.spec.full.recovered')).toBe('true'))
})

test('it is reported: as events, and by explain', async () => {
  const events = cluster.start('-n', node, 'events', '--tail', '-1')
  const reader = events.stdout.getReader()
  let text = ''
  while (!/EtcdUpkeepEvent.*WRITABLE/.test(text)) {
    const { value: bytes, done } = await reader.read()
    if (done) break
    text += Buffer.from(bytes).toString()
  }
  events.kill()
  expect(text).toMatch(/EtcdUpkeepEvent.*DEFRAGMENTED/)
  expect(text).toMatch(/EtcdUpkeepEvent.*FULL/)
  expect(text).toMatch(/EtcdUpkeepEvent.*WRITABLE/)
  expect((await cluster.talosctl('-n', node, 'explain')).stdout).toContain('etcd had reached its quota')
})
