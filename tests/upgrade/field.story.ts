/**
 * The official `talosctl upgrade-k8s` drives nodes of this system: a cluster of one control plane and one worker from the previous
 * minor of Kubernetes to the release inside, and once more to the release it then has, while a client writes and reads. Compiling
 * the previous minor and the official client takes many minutes, so the test command leaves it out:
 * `sudo bun tests/upgrade/all.ts --only field`, after `bun rootfs/build.ts`.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { succeeded } from '../cluster/cluster.ts'
import { buildTalosctl } from '../interop/client.ts'
import { finished } from '../support/command-result.ts'
import { figure } from '../support/figures.ts'
import { inside, keptEveryWrite, OlderCluster, previous, seconds } from './older-cluster.ts'

const story = 'field'
const cluster = new OlderCluster('upgrade-field', '10.93.0')
let official: string

beforeAll(async () => {
  official = await buildTalosctl()
  await cluster.begin(1, 1)
})
afterAll(() => cluster.end())

/** Upgrades with the official client while another client, of that name, writes and reads; returns what the official one printed. */
async function upgraded(name: string, what: string): Promise<string> {
  const client = cluster.traffic(name, [cluster.gateway])
  const began = performance.now()
  const argv = [official, 'upgrade-k8s', '--to', inside.version, '--nodes', cluster.first]
  const child = Bun.spawn(argv, {
    env: { ...process.env, ...cluster.env },
    cwd: cluster.home,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const { stdout, stderr } = succeeded(await finished(child))
  figure(story, `the official client, ${what}`, seconds(performance.now() - began))
  await keptEveryWrite(story, `during it, ${what}`, client)
  expect(await cluster.running()).toEqual(cluster.all(inside.version))
  return stdout + stderr
}

test('to the next minor', async () => {
  expect(await cluster.running()).toEqual(cluster.all(previous.version))
  expect(await upgraded('next', `from ${previous.version} to ${inside.version} on 1 + 1`)).toContain(inside.version)
})

test('to the release that the cluster has', async () => {
  await upgraded('same', 'to the same release')
})

test('the upgraded cluster is healthy', async () => {
  succeeded(await cluster.talosctl('-n', cluster.first, 'health', '--wait-timeout', '2m'))
})
