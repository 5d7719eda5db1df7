/** Members of etcd that are lost: one whose data is damaged joins again by itself, one whose machine is gone is replaced by a command. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { nodeDirectory, nodePaths } from '../../src/programs/node-supervisor/layout.ts'
import { EtcdTool } from '../etcd/etcd-tools.ts'
import { damageData } from '../etcd/robustness/faults.ts'
import { eventually, succeeded, TestCluster } from './cluster.ts'

const cluster = new TestCluster('members')
const tool = new EtcdTool(cluster)
const [first, second, third] = ['10.85.0.2', '10.85.0.3', '10.85.0.4'] as const
const flags = ['--controlplanes', '3', '--workers', '0', '--cidr', '10.85.0.0/24']
const count = 500
const nodeAt = (address: string) => {
  const found = cluster.nodes().find(({ ip }) => ip === address)
  if (!found) throw new Error(`no node has the address ${address}`)
  return found
}

beforeAll(async () => {
  await Promise.all([tool.build(), cluster.create(...flags)])
  await tool.login(first)
  await voters([first, second, third])
})
afterAll(async () => {
  await cluster.destroy()
  cluster.close()
  tool.close()
})

/** Ids of the members by name, as soon as all of these nodes vote. */
const voters = (nodes: readonly string[]) =>
  eventually(async () => {
    const { stdout } = succeeded(await cluster.talosctl('-n', first, 'etcd', 'members'))
    const rows = stdout
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/ {2,}/))
    expect(rows.map((row) => [row.find((cell) => cell.includes(':2379')), row.at(-1)]).toSorted()).toEqual(
      nodes.map((node) => [`https://${node}:2379`, 'false']),
    )
    return new Map(
      rows.map((row) => [row.find((cell) => cell.startsWith('members-')) ?? '', row.find((cell) => /^[0-9a-f]{16}$/.test(cell)) ?? '']),
    )
  }, 180)

const keysOf = async (node: string): Promise<number> =>
  (await tool.etcdctl([node], ['get', '/story/', '--prefix', '--keys-only'])).split('\n').filter(Boolean).length

test('a member whose log and database are damaged joins again by itself, and has every key', async () => {
  const { name } = nodeAt(third)
  const before = await voters([first, second, third])
  await tool.fill(first, '/story/', count)
  await damageData(cluster, nodeAt(third))
  await eventually(async () => expect((await voters([first, second, third])).get(name)).not.toBe(before.get(name)), 120)
  await eventually(async () => expect(await keysOf(third)).toBe(count))
  const state = () => cluster.talosctl('-n', third, 'get', 'etcdrepairs', 'etcd', '-o', 'jsonpath={.spec.state}')
  await eventually(async () => expect(succeeded(await state()).stdout.trim()).toBe('voting'))
})

test('that is reported, and the damaged data is kept', async () => {
  const explained = (await cluster.talosctl('-n', third, 'explain')).stdout
  expect(explained).toContain('etcd could not use its data (member/')
  const kept = join(nodePaths(nodeDirectory(join(cluster.state, cluster.name), nodeAt(third).name)).directory, 'disk')
  expect(readdirSync(kept)).not.toEqual([])
  succeeded(await cluster.talosctl('-n', third, 'ls', '/var/lib/etcd.damaged/member/wal'))
  const events = cluster.start('-n', third, 'events', '--tail', '-1')
  const reader = events.stdout.getReader()
  let text = ''
  while (!/EtcdRepairEvent.*REJOINED/.test(text)) {
    const { value, done } = await reader.read()
    if (done) break
    text += Buffer.from(value).toString()
  }
  events.kill()
  expect(text).toMatch(/EtcdRepairEvent.*PUT_ASIDE.*member\/.* is damaged/)
})

test('a member whose machine answers is not replaced', async () => {
  const refused = await cluster.talosctl('etcd', 'replace-member', nodeAt(second).name, '--dry-run=false')
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('answers: remove a member that lives with')])
})

test('a member whose machine is gone is replaced by a new machine with one command', async () => {
  const { name } = nodeAt(second)
  const paths = nodePaths(nodeDirectory(join(cluster.state, cluster.name), name))
  const before = (await voters([first, second, third])).get(name) ?? ''
  succeeded(await cluster.talosctl('-n', second, 'shutdown', '--force', '--wait=false'))
  await eventually(async () => expect(JSON.parse(readFileSync(paths.status, 'utf8')).state).toBe('stopped'))
  rmSync(paths.disk, { recursive: true })

  const plan = succeeded(await cluster.talosctl('etcd', 'replace-member', name)).stdout
  expect(plan).toContain(`gone: ${name} (${second}, ${before})`)
  expect(plan).toContain(`2. delete the Kubernetes node ${name}`)
  expect(plan).toContain('nothing was changed')

  const replacing = cluster.start('etcd', 'replace-member', name, '--dry-run=false', '--timeout', '4m')
  await eventually(async () => expect((await voters([first, third])).size).toBe(2))
  await cluster.create(...flags)
  const [stdout, stderr, code] = await Promise.all([
    new Response(replacing.stdout).text(),
    new Response(replacing.stderr).text(),
    replacing.exited,
  ])
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toContain(`has taken the place of ${name} (${second}, ${before})`)
  expect((await voters([first, second, third])).get(name)).not.toBe(before)
  expect(await keysOf(second)).toBe(count)
})
