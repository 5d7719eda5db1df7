/** A cluster without what a cluster usually has: one node, a pod network of the operator's own, no kube-proxy, no CoreDNS. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eventually, succeeded, TestCluster } from './cluster.ts'

const cluster = new TestCluster('bare')
const gateway = '10.64.0.1'
let web: ReturnType<typeof Bun.serve>
let progress = ''

beforeAll(async () => {
  const manifest = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: pod-network, namespace: kube-system}\ndata: {a: b}\n'
  web = Bun.serve({ port: 0, hostname: '0.0.0.0', fetch: () => new Response(manifest) })
  const patch = { cluster: { proxy: { disabled: true }, coreDNS: { disabled: true } } }
  const { stderr } = await cluster.create(
    ...['--workers', '0', '--cidr', '10.64.0.0/24', '--custom-cni-url', `http://${gateway}:${web.port}/network.yaml`],
    ...['--skip-k8s-node-readiness-check', '--config-patch', JSON.stringify(patch)],
  )
  progress = stderr
})
afterAll(async () => {
  await cluster.destroy()
  cluster.close()
  await web.stop(true)
})

test('health skips what is switched off', () => {
  expect(progress).not.toContain('waiting for all k8s nodes to report ready')
  expect(progress).toMatch(/waiting for all control plane components to be ready: OK/)
})

test('the operator’s pod network is applied, and nothing that was switched off', async () => {
  await eventually(async () => succeeded(await cluster.kubectl(['get', 'configmap', '--namespace', 'kube-system', 'pod-network'])), 30)
  const { items } = await cluster.objects('get', 'daemonsets,deployments', '--namespace', 'kube-system')
  expect(items.map(({ metadata }) => metadata.name)).toEqual([])
})

test('a request with other settings is refused with the remedy', async () => {
  const { code, stderr } = await cluster.talosctl('cluster', 'create', '--name', 'bare', '--cidr', '10.65.0.0/24')
  expect(code).toBe(1)
  expect(stderr).toBe(
    '--cidr: cluster "bare" was created with 10.64.0.0/24: leave the flag out, or destroy the cluster and create it again\n',
  )
})

test('a worker that is added has an address of its network and registers', async () => {
  succeeded(
    await cluster.talosctl(
      'cluster',
      'create',
      '--name',
      'bare',
      '--workers',
      '1',
      '--skip-k8s-node-readiness-check',
      '--wait-timeout',
      '2m',
    ),
  )
  expect(cluster.nodes().map(({ ip }) => ip)).toEqual(['10.64.0.2', '10.64.0.3'])
  const { items } = await cluster.objects('get', 'nodes')
  expect(items.map(({ metadata }) => metadata.name).sort()).toEqual(['bare-controlplane-1', 'bare-worker-1'])
})
