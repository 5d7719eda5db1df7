/**
 * A rotation of both authorities on three control planes and a worker, watched for ten minutes afterwards: every node ready, every
 * machine reached over new connections, every credential of before refused. `bun tests/rotation/all.ts` runs it.
 */

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, type KubeItem, succeeded, TestCluster } from '../cluster/cluster.ts'
import { figure } from '../support/figures.ts'

setDefaultTimeout(1_800_000)

const cluster = new TestCluster('rotation')
const oldTalosconfig = join(cluster.home, 'old-talosconfig')
const oldKubeconfig = join(cluster.home, 'old-kubeconfig')
const watched = 10 * 60_000

beforeAll(async () => {
  await cluster.create('--controlplanes', '3', '--cidr', '10.73.0.0/24')
  copyFileSync(cluster.env.TALOSCONFIG!, oldTalosconfig)
  copyFileSync(cluster.env.KUBECONFIG!, oldKubeconfig)
}, 900_000)
afterAll(async () => {
  await cluster.destroy()
  cluster.close()
})

const addresses = () => cluster.nodes().map(({ ip }) => ip)
const isReady = ({ status }: KubeItem) => status.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') ?? false

test('both authorities are rotated', async () => {
  const began = performance.now()
  const { stderr } = succeeded(
    await cluster.talosctl(
      ...['rotate-ca', '--dry-run=false', '--output', cluster.env.TALOSCONFIG!, '--kubeconfig', cluster.env.KUBECONFIG!],
    ),
  )
  const seconds = Math.round((performance.now() - began) / 1000)
  console.log(stderr)
  figure('authorities', 'both are replaced on three control planes and a worker', `${seconds} s`)
})

test('for ten minutes every node is ready, every machine is reached, and nothing of before is accepted', async () => {
  const end = performance.now() + watched
  let rounds = 0
  const since = new Date()
  do {
    const { items } = await cluster.objects('get', 'nodes')
    expect(items.map((node) => [node.metadata.name, isReady(node)])).toEqual(items.map((node) => [node.metadata.name, true]))
    expect(items).toHaveLength(4)
    for (const node of addresses()) {
      for (const endpoint of addresses().slice(0, 3)) succeeded(await cluster.talosctl('-e', endpoint, '-n', node, 'version'))
      expect((await cluster.talosctl('--talosconfig', oldTalosconfig, '-e', node, '-n', node, 'version')).code).not.toBe(0)
    }
    expect((await cluster.kubectl(['--kubeconfig', oldKubeconfig, 'get', 'nodes'])).code).not.toBe(0)
    rounds++
    await Bun.sleep(10_000)
  } while (performance.now() < end)
  const leases = (await cluster.objects('get', 'leases', '-n', 'kube-node-lease')).items as unknown as { spec: { renewTime: string } }[]
  expect(leases.map(({ spec }) => new Date(spec.renewTime) > since)).toEqual([true, true, true, true])
  await eventually(async () => succeeded(await cluster.talosctl('-n', addresses()[0]!, 'health', '--wait-timeout', '60s')))
  figure(
    'authorities',
    'watched afterwards, every node ready and reached, nothing of before accepted',
    `${watched / 60_000} min, ${rounds} times`,
  )
})
