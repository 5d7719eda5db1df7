/** Clusters whose nodes, pods and services have addresses of both families, and of IPv6 alone. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { isIPv6 } from '../../../src/wire/prefix.ts'
import { eventually, type KubeItem, succeeded, TestCluster } from '../cluster.ts'

const families = (addresses: readonly string[]): string[] => addresses.map((address) => (isIPv6(address) ? 'IPv6' : 'IPv4'))

interface Item extends KubeItem {
  spec: KubeItem['spec'] & { clusterIPs?: string[]; podCIDRs?: string[] }
  status: KubeItem['status'] & { podIPs?: { ip: string }[]; addresses?: { type: string; address: string }[] }
}

describe.each([
  ['both families', 'dual', ['--cidr', '10.76.0.0/24,fd00:76::/64'], ['IPv4', 'IPv6'], 'fd00:76::2', 'dual-worker-1'],
  ['IPv6 alone', 'six', ['--ipv6', '--ipv4=false', '--cidr', 'fd00:77::/64'], ['IPv6'], 'fd00:77::2', 'six-worker-1'],
] as [string, string, string[], string[], string, string][])('a cluster with %s', (_, name, flags, expected, controlPlane, worker) => {
  const cluster = new TestCluster(name)
  const items = async (...args: string[]) => (await cluster.objects('get', ...args)).items as Item[]

  beforeAll(() => cluster.create(...flags), 300_000)
  afterAll(() => cluster.end(), 60_000)

  test('is healthy; its nodes and pods have addresses of each', async () => {
    for (const { status, spec } of await items('nodes')) {
      const internal = (status.addresses ?? []).flatMap(({ type, address }) => (type === 'InternalIP' ? address : []))
      expect([families(internal), families(spec.podCIDRs ?? [])]).toEqual([expected, expected])
    }
    for (const { status } of await items('pods', '-n', 'kube-system', '-l', 'k8s-app=kube-dns'))
      expect(families((status.podIPs ?? []).map(({ ip }) => ip))).toEqual(expected)
  })

  test('resolves names of services at each address of its DNS service and of its pods', async () => {
    const [dns] = await items('services', '-n', 'kube-system', '-l', 'k8s-app=kube-dns')
    const addresses = dns?.spec.clusterIPs ?? []
    expect(families(addresses)).toEqual(expected)
    const pods = await items('pods', '-n', 'kube-system', '-l', 'k8s-app=kube-dns')
    const servers = [...addresses, ...pods.flatMap(({ status }) => (status.podIPs ?? []).map(({ ip }) => ip))]
    const family = expected[0] === 'IPv6' ? 'IPv6' : 'IPv4'
    const [api] = await items('services', '--field-selector', 'metadata.name=kubernetes')
    for (const server of servers)
      await eventually(async () => {
        const found = await cluster.resolve(cluster.initOf(worker), server, 'kubernetes.default.svc.cluster.local', family)
        expect([server, ...found]).toEqual([server, api?.spec.clusterIP ?? ''])
      })
  })

  test('serves the machine API at its IPv6 addresses, through one node to the other', async () => {
    const [first, second] = cluster.nodes().map(({ ip, secondIp }) => secondIp ?? ip)
    expect(first).toBe(controlPlane)
    for (const node of [first ?? '', second ?? '']) succeeded(await cluster.talosctl('-e', controlPlane, '-n', node, 'version'))
    const { stdout } = succeeded(await cluster.talosctl('-e', controlPlane, '-n', controlPlane, 'get', 'members', '-o', 'json'))
    for (const address of [first, second]) expect(stdout).toContain(address ?? '')
  })

  test('shows logs of a pod on the worker, and runs etcd at the address of the first family', async () => {
    const pods = await items('pods', '-n', 'kube-system', '-l', 'k8s-app=kube-proxy', '--field-selector', `spec.nodeName=${worker}`)
    succeeded(await cluster.kubectl(['-n', 'kube-system', 'logs', '--tail=1', pods[0]?.metadata.name ?? '']))
    const { stdout } = succeeded(await cluster.talosctl('-n', controlPlane, 'etcd', 'members'))
    const first = cluster.nodes()[0]?.ip ?? ''
    expect(stdout).toContain(isIPv6(first) ? `https://[${first}]:2380` : `https://${first}:2380`)
  })
})
