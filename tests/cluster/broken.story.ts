/**
 * Broken on purpose: each state that keeps a node from working is made on a real cluster, the last good settings stay in effect,
 * and `explain` names the true cause: the setting, the words of the program that failed, and the way back.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, succeeded, TestCluster } from './cluster.ts'
import { settled } from './trusted.ts'

const cluster = new TestCluster('broken')
let first = ''
let second = ''

beforeAll(async () => {
  await cluster.create('--controlplanes', '2', '--workers', '0')
  ;[first = '', second = ''] = cluster.nodes().map(({ ip }) => ip)
  await settled(cluster, first, 5)
}, 300_000)
afterAll(async () => {
  for (const pid of frozen.splice(0)) process.kill(pid, 'SIGCONT')
  await cluster.destroy()
  cluster.close()
}, 60_000)

const frozen: number[] = []
const on = (node: string, ...args: string[]) => cluster.on(node, ...args)
const patch = (node: string, text: string) => on(node, 'patch', 'mc', '-p', text)
const explained = async (node: string) => (await on(node, 'explain')).stdout
const pidOf = (node: string, commandLine: string) => cluster.processIn(nameOf(node), commandLine)
const nameOf = (node: string) => cluster.nodes().find(({ ip }) => ip === node)?.name ?? ''

/** What a component is seen by: its pod, or its service. */
const seenBy = (component: string): string[] =>
  component === 'kubelet' || component === 'etcd'
    ? ['service', component]
    : ['StaticPodStatuses.kubernetes.talos.dev', `kube-system/${component}-${nameOf(first)}`]

/**
 * Breaks a component of the first node, checks what is explained once the settings were rejected, reverts as explained, and waits
 * until the component runs. Others that it took along come back by and by.
 */
async function broken(component: string, section: string, { names, words }: { names: string; words: RegExp }): Promise<void> {
  succeeded(await patch(first, section))
  const text = await eventually(async () => {
    const found = await explained(first)
    expect(found).toContain('it does not start with its new settings')
    return found
  })
  expect(text.split('\n')[0]).toContain(`component ${component}: it does not start with its new settings (${names}`)
  expect(text).toMatch(words)
  expect((await on(first, 'health', '--wait-timeout', '3s')).stderr).toContain(`${first}: component ${component}: it does not start`)
  const [, restore] = /go back with "talosctl config-history restore (\d+)"/.exec(text) ?? []
  succeeded(await on(first, 'config-history', 'restore', restore ?? 'none named'))
  await eventually(async () => expect((await on(first, 'explain', ...seenBy(component))).stdout).toEndWith(' is healthy\n'))
}

describe('what is known to be wrong beforehand is refused with the setting and the reason:', () => {
  const refused: [string, string, RegExp][] = [
    [
      'a flag that the API server does not have',
      'cluster: {apiServer: {extraArgs: {no-such-flag: "x"}}}',
      /apiServer\.extraArgs.*no-such-flag/,
    ],
    ['a flag that the kubelet does not have', 'machine: {kubelet: {extraArgs: {no-such-flag: "x"}}}', /kubelet\.extraArgs.*no-such-flag/],
    ['a flag that etcd does not have', 'cluster: {etcd: {extraArgs: {no-such-flag: "x"}}}', /etcd\.extraArgs.*no-such-flag/],
    ['a field that the kubelet does not have', 'machine: {kubelet: {extraConfig: {noSuchField: 1}}}', /extraConfig.*noSuchField/],
    ['a field of the kubelet of another type', 'machine: {kubelet: {extraConfig: {maxPods: many}}}', /extraConfig.*maxPods/],
    ['a file in a place that is read-only', 'machine: {files: [{path: /etc/x, op: create, permissions: 0o600, content: x}]}', /\/etc\/x/],
    ['another machine type', 'machine: {type: worker}', /a worker does not hold the key|machine type/],
    ['another token', 'machine: {token: abcdef.0123456789abcdef}', /machine\.token/],
    ['another cluster', 'cluster: {id: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}', /cluster\.id/],
    ['a secret of another length', 'cluster: {secret: c2hvcnQ=}', /cluster\.secret/],
    ['other networks of services', 'cluster: {network: {serviceSubnets: [10.200.0.0/16]}}', /serviceSubnets/],
    [
      'the host name of another member',
      '{apiVersion: v1alpha1, kind: HostnameConfig, hostname: broken-controlplane-2, auto: "off"}',
      /broken-controlplane-2/,
    ],
  ]
  for (const [what, section, reason] of refused)
    test(what, async () => {
      const { code, stderr } = await patch(first, section)
      expect(stderr).toMatch(reason)
      expect(code).toBe(1)
    }, 30_000)
})

describe('settings that do not start leave the component with the ones it ran with:', () => {
  test('an admission plugin that the API server does not know', async () => {
    await broken('kube-apiserver', 'cluster: {apiServer: {extraArgs: {enable-admission-plugins: Nonsense}}}', {
      names: 'cluster.apiServer.extraArgs.enable-admission-plugins)',
      words: /unknown admission plugin|Nonsense/,
    })
    succeeded(await cluster.kubectl(['get', 'nodes']))
  }, 180_000)

  test('an audit policy that the API server cannot read, though the configuration may hold any', async () => {
    await broken(
      'kube-apiserver',
      'cluster: {apiServer: {auditPolicy: {apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Nonsense}]}}}',
      {
        names: 'cluster.apiServer.auditPolicy',
        words: /Nonsense/,
      },
    )
  }, 180_000)

  test('an image of the API server that is nowhere', async () => {
    await broken('kube-apiserver', 'cluster: {apiServer: {image: "registry.invalid/kube-apiserver:v1.36.3"}}', {
      names: 'cluster.apiServer.image)',
      words: /registry\.invalid/,
    })
    succeeded(await cluster.kubectl(['get', 'nodes']))
  }, 180_000)

  test('an eviction threshold that the kubelet cannot read', async () => {
    const before = pidOf(first, '/usr/local/bin/kubelet')
    await broken('kubelet', 'machine: {kubelet: {extraConfig: {evictionHard: {memory.available: nonsense}}}}', {
      names: 'machine.kubelet.extraConfig.evictionHard["memory.available"])',
      words: /nonsense|quantit/,
    })
    expect(pidOf(first, '/usr/local/bin/kubelet')).not.toBe(before)
  }, 120_000)

  test('an image of the kubelet that is nowhere: the running kubelet is not touched', async () => {
    const before = pidOf(first, '/usr/local/bin/kubelet')
    await broken('kubelet', 'machine: {kubelet: {image: "registry.invalid/kubelet:v1.36.3"}}', {
      names: 'machine.kubelet.image)',
      words: /image "registry\.invalid\/kubelet:v1\.36\.3" cannot be pulled/,
    })
    expect(pidOf(first, '/usr/local/bin/kubelet')).toBe(before)
  }, 120_000)

  test('a compaction mode that etcd does not know, at its next start, and an image that is nowhere, before it', async () => {
    const etcd = () => pidOf(first, '/usr/local/bin/etcd')
    const before = etcd()
    const mode = 'cluster: {etcd: {extraArgs: {auto-compaction-mode: nonsense}}}'
    expect(succeeded(await patch(first, mode)).stderr).toMatch(/takes effect later: cluster\.etcd\S* when service "etcd" next starts/)
    expect(await explained(first)).toContain('healthy')
    expect(etcd()).toBe(before)
    succeeded(await on(first, 'service', 'etcd', 'restart'))
    await broken('etcd', mode, {
      names: 'cluster.etcd.extraArgs.auto-compaction-mode)',
      words: /failed to verify flags: unknown auto-compaction-mode "nonsense"/,
    })
    await eventually(async () => expect((await on(first, 'etcd', 'members')).stdout.split('\n').length).toBe(4))
    succeeded(await cluster.kubectl(['get', 'nodes']))

    const running = etcd()
    await broken('etcd', 'cluster: {etcd: {image: "registry.invalid/etcd:v3.6.16"}}', {
      names: 'cluster.etcd.image)',
      words: /image "registry\.invalid\/etcd:v3\.6\.16" cannot be pulled/,
    })
    expect(etcd()).toBe(running)
  }, 240_000)
})

test('an etcd without a majority is named with the member that does not answer', async () => {
  const pid = pidOf(second, '/usr/local/bin/etcd')
  expect(pid).toBeDefined()
  process.kill(pid!, 'SIGSTOP')
  frozen.push(pid!)
  const text = await eventually(async () => {
    const found = await explained(first)
    expect(found).toContain('etcd members: 1 of 2 answer, and a leader needs 2')
    return found
  }, 90)
  expect(text.split('\n')[0]).toContain('etcd members:')
  expect(text).toContain(second)
  const health = await on(first, 'health', '--wait-timeout', '5s')
  expect(health.code).toBe(1)
  expect(health.stderr).toContain(`${first}: etcd members: 1 of 2 answer`)
  process.kill(frozen.pop()!, 'SIGCONT')
  await eventually(async () => expect(await explained(first)).toContain('the machine is healthy'), 90)
}, 240_000)
