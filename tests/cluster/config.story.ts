/**
 * A node's configuration and its explanations on real parts: rehearsed, tried, left unconfirmed over a restart, confirmed,
 * restored, refused with reasons; and explanations of what keeps a node from being healthy.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, succeeded, TestCluster } from './cluster.ts'
import { settled } from './trusted.ts'

const cluster = new TestCluster('config')
const transcripts = join(import.meta.dir, '../transcripts/config')
let controlPlane = ''
let worker = ''

beforeAll(async () => {
  await cluster.create()
  const address = (wanted: string) => cluster.nodes().find(({ role }) => role === wanted)?.ip ?? ''
  controlPlane = address('controlplane')
  worker = address('worker')
}, 300_000)
afterAll(() => cluster.end(), 60_000)

const on = (node: string, ...args: string[]) => cluster.on(node, ...args)
const label = (value: string) => `machine: {nodeLabels: {story: ${value}}}`
const patch = (node: string, text: string, ...flags: string[]) => on(node, 'patch', 'mc', '-p', text, ...flags)

/** The label as the node's controllers have it. */
async function labelOn(node: string): Promise<string | undefined> {
  const { stdout } = await on(node, 'get', 'nodelabelspecs', '-o', 'yaml')
  return /^ {4}key: story\n {4}value: (.*)$/m.exec(stdout)?.[1]
}

const labelled = (node: string, value: string | undefined, seconds = 30) =>
  eventually(async () => expect(await labelOn(node)).toBe(value as string), seconds)

const history = async (node: string) =>
  succeeded(await on(node, 'config-history'))
    .stdout.trimEnd()
    .split('\n')
    .slice(1)

describe('a configuration', () => {
  test('is previewed: how the text changes, what is made of it, and that nothing restarts', async () => {
    const { stdout } = succeeded(await patch(worker, label('dry'), '--dry-run'))
    expect(stdout).toContain('+ machine.nodeLabels.story: dry')
    expect(stdout).toContain('  * no service restarts and no pod is replaced')
    expect(stdout).toMatch(/ {2}\+ NodeLabelSpecs\.k8s\.talos\.dev\/story/)
    expect(await labelOn(worker)).toBeUndefined()
    const kubelet = succeeded(await patch(worker, 'machine: {kubelet: {extraArgs: {v: "3"}}}', '--dry-run'))
    expect(kubelet.stdout).toContain('  * service "kubelet" restarts')
  })

  test('that is tried goes back when its time is over', async () => {
    succeeded(await patch(worker, label('tried'), '--mode', 'try', '--timeout', '5s'))
    await labelled(worker, 'tried', 5)
    await labelled(worker, undefined)
    expect((await history(worker))[0]).toMatch(/ try +os:admin@\S+ +\w+ +reverted: its time was over$/)
  })

  test('that nobody confirms goes back although the node restarts in between', async () => {
    succeeded(await patch(worker, label('unconfirmed'), '--confirm-within', '45s'))
    await labelled(worker, 'unconfirmed', 5)
    succeeded(await on(worker, 'reboot', '--wait'))
    expect((await history(worker))[0]).toContain('in force, to be confirmed')
    expect(await labelOn(worker)).toBe('unconfirmed')
    await labelled(worker, undefined, 60)
    expect((await history(worker))[0]).toMatch(/reverted: it was not confirmed in time$/)
  }, 180_000)

  test('that is confirmed stays, and an older one can be brought back', async () => {
    succeeded(await patch(worker, label('confirmed'), '--confirm-within', '1m'))
    expect(succeeded(await on(worker, 'apply-config', '--confirm')).stderr).toContain('is confirmed and stays')
    const lines = await history(worker)
    expect(lines[0]).toContain('in force, confirmed')
    const first = lines.at(-1)?.trim().split(/ +/)[1] ?? ''
    const { stdout } = succeeded(await on(worker, 'config-history', 'diff', first))
    expect(stdout).toContain('+ machine.nodeLabels.story: confirmed')
    succeeded(await on(worker, 'config-history', 'restore', first))
    await labelled(worker, undefined)
  })

  for (const name of readdirSync(transcripts).filter((file) => file.endsWith('.yaml')))
    test(`that is broken is refused with all that is wrong: ${name.slice(3, -5).replaceAll('-', ' ')}`, async () => {
      const { code, stderr } = await on(worker, 'apply-config', '-f', join(transcripts, name))
      expect(code).toBe(1)
      for (const line of readFileSync(join(transcripts, name.replace('.yaml', '.txt')), 'utf8')
        .trimEnd()
        .split('\n'))
        expect(stderr).toContain(line)
    })
})

/** The status of a node, once it contains the given text. */
const explained = (node: string, word: string | RegExp, seconds = 90) =>
  eventually(async () => {
    const { stdout } = succeeded(await on(node, 'explain'))
    expect(stdout).toMatch(word)
    return stdout
  }, seconds)

const restore = async (node: string) => {
  const first = (await history(node)).at(-1)?.trim().split(/ +/)[1] ?? ''
  succeeded(await on(node, 'config-history', 'restore', first))
}

describe('a node explains itself', () => {
  beforeAll(() => Promise.all([settled(cluster, worker, 1), settled(cluster, controlPlane, 5)]), 120_000)

  test('when it is healthy', async () => {
    await explained(worker, /^the machine is healthy$/m)
  })

  test('when an image cannot be pulled', async () => {
    succeeded(await patch(worker, 'machine: {kubelet: {image: registry.invalid/kubelet:v1.36.3}}'))
    const text = await explained(worker, /^ *1\. component kubelet: it does not start with its new settings \(machine\.kubelet\.image\)/m)
    expect(text).toContain('image "registry.invalid/kubelet:v1.36.3" cannot be pulled')
    await restore(worker)
    await explained(worker, /^the machine is healthy$/m)
  }, 240_000)

  test('when a static pod has an argument that its program refuses', async () => {
    succeeded(await patch(controlPlane, 'cluster: {scheduler: {extraArgs: {tls-min-version: VersionTLS99}}}'))
    const text = await explained(controlPlane, /^ *1\. component kube-scheduler: it does not start with its new settings/m)
    expect(text).toMatch(/unknown tls version/i)
    await restore(controlPlane)
    await explained(controlPlane, /^the machine is healthy$/m)
  }, 240_000)

  test('when the endpoint of the cluster is wrong', async () => {
    succeeded(
      await patch(
        worker,
        'machine: {features: {kubePrism: {enabled: false}}}\ncluster: {controlPlane: {endpoint: "https://127.0.0.9:6443"}}',
      ),
    )
    const text = await explained(worker, /cluster endpoint https:\/\/127\.0\.0\.9:6443: nothing answers there/, 120)
    expect(text).toContain('check cluster.controlPlane.endpoint')
    await restore(worker)
    await explained(worker, /^the machine is healthy$/m)
  }, 300_000)

  test('when a disk is full', async () => {
    const enter = (...command: string[]) => {
      const { exitCode, stderr } = Bun.spawnSync(['nsenter', '-t', String(cluster.initOf('config-worker-1')), '-m', '--', ...command])
      if (exitCode !== 0) throw new Error(stderr.toString())
    }
    enter('mount', '-t', 'tmpfs', '-o', 'size=64k', 'full', '/system/state')
    writeFileSync(`/proc/${cluster.initOf('config-worker-1')}/root/system/state/ballast`, new Uint8Array(65536))
    const { code, stderr } = await patch(worker, label('full'))
    expect([code, stderr]).toEqual([1, expect.stringContaining('ENOSPC')])
    await explained(worker, /^ *1\. file system \/system\/state: it is full/m)
    enter('umount', '/system/state')
    await explained(worker, /^the machine is healthy$/m)
  }, 120_000)

  test('when a secret is missing from what it kept', async () => {
    const kept = `/proc/${cluster.initOf('config-controlplane-1')}/root/system/state/config.yaml`
    const whole = readFileSync(kept, 'utf8')
    writeFileSync(kept, whole.replace(/^ {2}etcd:\n {4}ca:\n {6}crt: .*\n {6}key: .*\n/m, ''))
    expect(readFileSync(kept, 'utf8').length).toBeLessThan(whole.length)
    succeeded(await on(controlPlane, 'reboot', '--wait=false'))
    const text = await explained(controlPlane, /EtcdRootSecrets\.secrets\.talos\.dev\/etcd/, 120)
    expect(text).toContain('cluster.etcd.ca')
    writeFileSync(kept.replace(/\/proc\/\d+/, `/proc/${cluster.initOf('config-controlplane-1')}`), whole)
    succeeded(await on(controlPlane, 'reboot', '--wait=false'))
    await eventually(async () => expect((await on(controlPlane, 'explain')).stdout).toMatch(/^the machine is healthy$/m), 180)
  }, 400_000)
})
