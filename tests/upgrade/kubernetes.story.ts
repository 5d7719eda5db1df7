/**
 * A cluster of three control planes and a worker is upgraded from the previous minor of Kubernetes, whose images it pulls from a
 * registry, to the release inside: shown by a dry run, interrupted, rolled back, and then, interrupted once more, completed while
 * clients write and read. Compiling the previous minor takes many minutes, so the test command leaves it out:
 * `sudo bun tests/upgrade/all.ts`, after `bun rootfs/build.ts`.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { succeeded } from '../cluster/cluster.ts'
import { figure } from '../support/figures.ts'
import { inside, keptEveryWrite, OlderCluster, previous, seconds } from './older-cluster.ts'
import { interrupted, upgrade } from './upgrade-kubernetes.ts'

const story = 'kubernetes'
const cluster = new OlderCluster('upgrade', '10.94.0')

beforeAll(() => cluster.begin(3, 1))
afterAll(() => cluster.end())

test('the cluster begins with the previous minor, on nodes that have the newest inside', async () => {
  expect(await cluster.running()).toEqual(cluster.all(previous.version))
})

test('a dry run names every step and changes nothing', async () => {
  const { stdout } = succeeded(await upgrade(cluster, '--to', inside.version, '--dry-run'))
  expect(stdout.match(/^kube\S+ of upgrade-\S+:$/gm)).toHaveLength(16)
  expect(stdout).toContain(`+          image: registry.k8s.io/kube-proxy:v${inside.version}`)
  expect(await cluster.running()).toEqual(cluster.all(previous.version))
})

test('an upgrade that is cut off midway is rolled back', async () => {
  await interrupted(cluster, /kube-controller-manager of upgrade-controlplane-2 .*: healthy/, '--to', inside.version)
  expect((await cluster.running()).server).toBe(`v${inside.version}`)
  const began = performance.now()
  const { stderr } = succeeded(await upgrade(cluster, '--rollback'))
  figure(story, 'rollback of an upgrade with 5 of 16 steps done', seconds(performance.now() - began))
  expect(stderr).toContain(`Kubernetes is back at ${previous.version}`)
  expect(await cluster.running()).toEqual(cluster.all(previous.version))
})

test('it is upgraded over an interruption, no acknowledged write is lost, and the API is away for less than five seconds', async () => {
  expect(cluster.controlPlanes()).toHaveLength(3)
  const clients = {
    'a client that knows the three servers': cluster.traffic('direct', cluster.controlPlanes()),
    'a client of the one balanced endpoint': cluster.traffic('balanced', [cluster.gateway]),
  }

  const began = performance.now()
  await interrupted(cluster, /kube-scheduler of upgrade-controlplane-1 .*: healthy/, '--to', inside.version)
  const { stderr } = succeeded(await upgrade(cluster, '--to', inside.version))
  expect(stderr.match(/: has it already, and is healthy$/gm)?.length).toBeGreaterThanOrEqual(7)
  const what = `upgrade of 3 + 1 from ${previous.version} to ${inside.version}, interrupted once`
  figure(story, what, seconds(performance.now() - began))

  for (const [who, client] of Object.entries(clients)) {
    const unavailable = await keptEveryWrite(story, who, client)
    expect(client.account.acknowledged.length).toBeGreaterThan(100)
    expect(unavailable).toBeLessThan(5000)
  }
  expect(await cluster.running()).toEqual(cluster.all(inside.version))
})

test('the upgraded cluster is healthy', async () => {
  succeeded(await cluster.talosctl('-n', cluster.first, 'health', '--wait-timeout', '2m'))
})
