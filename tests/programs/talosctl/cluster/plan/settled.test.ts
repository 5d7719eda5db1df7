import { expect, test } from 'bun:test'
import { parseNetworks } from '../../../../../src/programs/talosctl/cluster/host/cidr.ts'
import { type ClusterRequest, planChange, planCluster } from '../../../../../src/programs/talosctl/cluster/plan/plan.ts'
import { checkSettled, type RequestedSettings } from '../../../../../src/programs/talosctl/cluster/plan/settled.ts'
import { gib, request } from './request.ts'

const cluster = planCluster(request(), { kubernetes: 40001, machineApi: 40002 })
const nothing = { cpus: false, memory: false }
const requested: RequestedSettings = {
  cidr: false,
  families: false,
  mtu: false,
  kubernetesVersion: false,
  exposedPorts: false,
  controlplanes: nothing,
  workers: nothing,
}

function refusal(change: Partial<ClusterRequest>, what: Partial<RequestedSettings>): string | undefined {
  const wanted = request(change)
  try {
    checkSettled(cluster, wanted, { ...requested, ...what }, planChange(cluster, wanted).added)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

test('what was requested for again in the same words is fine', () => {
  const all = { cpus: true, memory: true }
  expect(
    refusal({}, { cidr: true, mtu: true, kubernetesVersion: true, exposedPorts: true, controlplanes: all, workers: all }),
  ).toBeUndefined()
})

test.each([
  [{ networks: parseNetworks('10.6.0.0/24') }, { cidr: true }, '--cidr: cluster "demo" was created with 10.5.0.0/24: '],
  [{ mtu: 1400 }, { mtu: true }, '--mtu: cluster "demo" was created with 1500: '],
  [{ kubernetesVersion: '1.36.0' }, { kubernetesVersion: true }, '--kubernetes-version: cluster "demo" was created with 1.36.3: '],
  [{ exposedPorts: [] }, { exposedPorts: true }, '--exposed-ports: cluster "demo" was created with 8080:80/tcp: '],
  [
    { workers: { count: 1, cpus: 2000, memory: gib } },
    { workers: { cpus: false, memory: true } },
    '--memory-workers: cluster "demo" was created with 2.00GiB: ',
  ],
] as [Partial<ClusterRequest>, Partial<RequestedSettings>, string][])('%j is refused with the way out', (change, what, message) => {
  expect(refusal(change, what)).toBe(`${message}leave the flag out, or destroy the cluster and create it again`)
})

test('a family that is added later is refused with the way out', () => {
  expect(refusal({ networks: parseNetworks('10.5.0.0/24,fd00:5::/64') }, { families: true })).toStartWith(
    '--ipv6: cluster "demo" was created with IPv4: ',
  )
})

test('a default that differs is not a request', () => {
  expect(refusal({ networks: parseNetworks('10.6.0.0/24'), mtu: 1400 }, {})).toBeUndefined()
})

test('nodes that are added may be of another size', () => {
  expect(refusal({ workers: { count: 2, cpus: 1000, memory: gib } }, { workers: { cpus: true, memory: true } })).toBeUndefined()
})
