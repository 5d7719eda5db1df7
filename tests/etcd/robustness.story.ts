/**
 * Clients write, read and watch on a cluster of three control planes while one node after the other fails. etcd's own checker judges
 * what they saw. ICHOR_MINUTES sets for how long (30 by default).
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eventually, TestCluster } from '../cluster/cluster.ts'
import { figure } from '../support/figures.ts'
import { EtcdTool, withHistory } from './etcd-tools.ts'
import { faultsWith } from './robustness/faults.ts'
import { LimitedDisks } from './robustness/limited-disks.ts'
import { RecordTools } from './robustness/record.ts'
import { Releases } from './robustness/releases.ts'

const minutes = Number(process.env.ICHOR_MINUTES ?? 30)
const cluster = new TestCluster('robust')
const tool = new EtcdTool(cluster)
const record = new RecordTools(cluster.home)
const disks = new LimitedDisks(cluster)
const releases = new Releases(cluster)
const nodes = ['10.79.0.2', '10.79.0.3', '10.79.0.4']
/** Seconds in which a node is healthy again after a fault. */
const recoveryTime = 300

beforeAll(async () => {
  const flags = ['--controlplanes', '3', '--workers', '0', '--cidr', '10.79.0.0/24', ...withHistory]
  await disks.make(['robust-controlplane-1', 'robust-controlplane-2', 'robust-controlplane-3'])
  await Promise.all([tool.build(), record.build(), cluster.create(...flags)])
  await releases.build()
  await tool.login(nodes[0] ?? '')
})
afterAll(async () => {
  releases.close()
  await cluster.destroy()
  disks.close()
  cluster.close()
  tool.close()
})

/** Three voting members, and each of them answers. */
const healthy = () =>
  eventually(async () => {
    expect((await tool.members(nodes)).map(({ isLearner }) => isLearner === true)).toEqual([false, false, false])
    for (const node of nodes) await tool.etcdctl([node], ['get', '/robustness/begin'])
  }, recoveryTime)

test('no acknowledged write is lost, every read is linearizable and every watch complete, whatever fails', async () => {
  const counts = new Map<string, number>()
  let slowest = { name: '', seconds: 0 }
  const faults = faultsWith(disks, releases)
  await healthy()
  const recording = record.start(nodes, tool.folder)
  const began = performance.now()
  for (let turn = 0; performance.now() - began < minutes * 60_000; turn++) {
    const names = Object.keys(faults)
    const name = names[turn % names.length] ?? ''
    const node = cluster.nodes()[(turn + Math.floor(turn / names.length)) % nodes.length]
    if (!node) throw new Error('the cluster has no nodes')
    console.log(`${Math.round((performance.now() - began) / 1000)} s: ${name}: ${node.name}`)
    const before = performance.now()
    await faults[name]?.(cluster, node)
    await healthy()
    const seconds = (performance.now() - before) / 1000
    if (seconds > slowest.seconds) slowest = { name, seconds }
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  await recording.stop()
  const result = await record.judge()
  expect(result.Lost).toEqual([])
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const number = (value: number) => Math.round(value).toLocaleString('en')
  figure('robustness', 'duration', `${(result.Seconds / 60).toFixed(1)} min`)
  figure('robustness', `faults, one node at a time (${[...counts].map(([name, count]) => `${name} ${count}`).join(', ')})`, `${total}`)
  figure('robustness', 'calls, of which writes that were acknowledged', `${number(result.Calls)}, ${number(result.Acknowledged)}`)
  figure('robustness', 'acknowledged writes that were lost', `${result.Lost.length}`)
  figure(
    'robustness',
    'linearizability and watch guarantees, by the checker of etcd 3.6.16',
    `kept, checked in ${number(result.CheckSeconds)} s`,
  )
  figure('robustness', 'events that three watches received', number(result.Events))
  figure('robustness', 'longest time without an acknowledged write', `${result.LongestGap.toFixed(1)} s`)
  figure('robustness', `longest time from a fault to three voting members that answer (${slowest.name})`, `${slowest.seconds.toFixed(1)} s`)
})
