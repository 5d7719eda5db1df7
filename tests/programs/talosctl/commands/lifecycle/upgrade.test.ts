import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ichor } from '../../../../../src/rpc/enums.ts'
import { type Context, clientStream, type Method, serverStream, unary } from '../../../../../src/rpc/server/method.ts'
import { RpcError } from '../../../../../src/rpc/status.ts'
import { installerLayout, releaseFiles, signingKey, tarOf, writeTree } from '../../../../os/lifecycle/release/installer.ts'
import { node, talosctl } from '../../peer.ts'

const admins = ['os:admin'] as const
const folder = mkdtempSync(join(tmpdir(), 'ichor-upgrade-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** What a node is like after its restart. */
interface After {
  /** Failures that META remembers. */
  failures?: string
}

/** A node that takes an upgrade, restarts, and has its trial behind it when it is looked at the second time. */
function upgrading(received: unknown[], { failures }: After = {}): Method[] {
  let restarted = false
  let looks = 0
  return [
    serverStream('machine.LifecycleService/Upgrade', admins, async function* ({ source }) {
      received.push(['upgrade', source?.imageName])
      yield { progress: { message: 'writing v1.13.1 to slot B' } }
      yield { progress: { exitCode: 0 } }
    }),
    serverStream('ichor.v1.ReleaseService/Upgrade', admins, async function* ({ imageName, force }) {
      received.push(['forced', imageName, force])
      yield { message: 'writing v1.13.1 to slot B' }
    }),
    clientStream('ichor.v1.ReleaseService/Send', admins, async (requests) => {
      const hash = new Bun.CryptoHasher('sha256')
      for await (const { data } of requests) hash.update(data)
      return { imageName: `upload:${hash.digest('hex')}` }
    }),
    serverStream('ichor.v1.ReleaseService/Plan', admins, async function* ({ imageName }) {
      yield { progress: `pulling "${imageName}"` }
      const { FINE, REFUSED } = ichor.v1.PlanItem.Verdict
      const items = [{ subject: 'signature', text: 'good', verdict: FINE }]
      yield { items: imageName.includes('bad') ? [...items, { subject: 'etcd', text: 'no majority', verdict: REFUSED }] : items }
    }),
    serverStream('cosi.resource.State/List', admins, async function* () {}),
    unary('machine.MachineService/Reboot', admins, ({ mode }) => {
      received.push(['reboot', mode])
      restarted = true
      return { messages: [{ actorId: 'me' }] }
    }),
    unary('machine.MachineService/Upgrade', admins, ({ image, stage, preserve }) => {
      received.push(['by itself', image, stage, preserve])
      restarted = true
      return { messages: [{ ack: 'taken', actorId: 'me' }] }
    }),
    unary('cosi.resource.State/Get', admins, ({ type, id }) => {
      const resource = (spec: string) => ({
        resource: { metadata: { id, created: { seconds: restarted ? 200 : 100, nanos: 0 } }, spec: { yamlSpec: spec } },
      })
      if (type.startsWith('MachineStatuses')) return resource('stage: running\n')
      if (restarted && id === '0x06' && looks++ === 0) return resource("value: '{}'\n")
      if (restarted && id === '0x20' && failures) return resource(`value: '${failures}'\n`)
      throw new RpcError('NotFound', 'there is none')
    }),
  ]
}

const run = (methods: Method[], ...args: string[]) => talosctl(methods, ['upgrade', ...args], { nodes: [node] })

test('a release is written, the node restarts, and the trial is awaited', async () => {
  const received: unknown[] = []
  const { code, stdout, stderr } = await run(upgrading(received), '--image', 'registry.example/installer:v1.13.1')
  expect([code, stdout]).toEqual([0, ''])
  expect(received).toEqual([
    ['upgrade', 'registry.example/installer:v1.13.1'],
    ['reboot', 0],
  ])
  expect(stderr).toContain(`${node}: writing v1.13.1 to slot B\n`)
  expect(stderr).toContain(`${node}: on trial, running\n`)
  expect(stderr).toEndWith(`${node}: upgraded, marked good\n`)
}, 30_000)

test('a node that went back is a failure, with its reason', async () => {
  const failures = '[{"version":"v1.13.1","why":"not healthy within 30 minutes"}]'
  const { code, stderr } = await run(upgrading([], { failures }), '--image', 'registry.example/installer:v1.13.1')
  expect(code).toBe(1)
  expect(stderr).toContain('it went back: v1.13.1 failed: not healthy within 30 minutes')
}, 30_000)

test('an image of this computer is sent first, as archive or folder alike', async () => {
  const layout = installerLayout(releaseFiles('v1.13.1', signingKey()))
  const sorted = new Map([...layout].sort(([a], [b]) => (a < b ? -1 : 1)))
  writeTree(join(folder, 'layout'), sorted)
  await Bun.write(join(folder, 'layout.tar'), tarOf(sorted))
  const name = `upload:${new Bun.CryptoHasher('sha256').update(tarOf(sorted)).digest('hex')}`
  for (const path of ['layout', 'layout.tar']) {
    const received: unknown[] = []
    await run(upgrading(received), '--image', join(folder, path), '--no-reboot')
    expect(received).toEqual([['upgrade', name]])
  }
  const absent = await run(upgrading([]), '--image', './absent.tar')
  expect(absent.stderr).toContain('image "./absent.tar" is not on this computer')
  const empty = await run(upgrading([]), '--image', folder)
  expect(empty.stderr).toContain('is no OCI layout')
}, 30_000)

test('an image that the node has is not sent again', async () => {
  const image = join(folder, 'large.tar')
  await Bun.write(image, Buffer.alloc(8 << 20))
  let taken = 0
  const here = clientStream('ichor.v1.ReleaseService/Send', admins, async (requests) => {
    for await (const { data, sha256 } of requests) {
      taken += data.length
      if (sha256) return { imageName: `upload:${sha256}` }
    }
    throw new RpcError('InvalidArgument', 'the first message names no digest')
  })
  const received: unknown[] = []
  const methods = [...upgrading(received).filter(({ path }) => path !== here.path), here]
  const { code } = await run(methods, '--image', image, '--no-reboot')
  expect(received).toEqual([['upgrade', `upload:${new Bun.CryptoHasher('sha256').update(Buffer.alloc(8 << 20)).digest('hex')}`]])
  expect([code, taken]).toEqual([0, 0])
}, 30_000)

test('flags choose who does what', async () => {
  const image = 'registry.example/installer:v1.13.1'
  for (const [flags, calls] of [
    [['--force', '--no-reboot'], [['forced', image, true]]],
    [['--legacy', '--no-wait'], [['by itself', image, false, true]]],
    [['--stage', '--no-wait'], [['by itself', image, true, true]]],
    [
      ['--no-wait', '-m', 'powercycle'],
      [
        ['upgrade', image],
        ['reboot', 1],
      ],
    ],
  ] as const) {
    const received: unknown[] = []
    expect((await run(upgrading(received), '--image', image, ...flags)).code).toBe(0)
    expect(received).toEqual([...calls])
  }
}, 30_000)

test('without waiting the request is reported', async () => {
  const { stdout } = await run(upgrading([]), '--image', 'registry.example/installer:v1.13.1', '--no-wait')
  expect(stdout).toMatch(/^NODE\s+ACK\s+STARTED\n10\.6\.0\.2\s+Upgrade request received\s+\d{4}-/)
})

test('a dry run shows what was found, and fails where the upgrade would be refused', async () => {
  const good = await run(upgrading([]), '--image', 'registry.example/installer:good', '--dry-run')
  expect(good.stdout).toBe('NODE       VERDICT   SUBJECT     FOUND\n10.6.0.2   ok        signature   good\n')
  expect(good.code).toBe(0)
  const listed = await run(upgrading([]), '--image', 'registry.example/installer:good', '--dry-run', '-o', 'json')
  expect(JSON.parse(listed.stdout)[0]).toEqual({
    node: expect.any(String),
    verdict: 'ok',
    subject: expect.any(String),
    found: expect.any(String),
  })
  const bad = await run(upgrading([]), '--image', 'registry.example/installer:bad', '--dry-run')
  expect(bad.stdout).toContain('refused   etcd        no majority')
  expect(bad.code).toBe(1)
})

test('a cluster is upgraded only when its members are known', async () => {
  const { code, stderr } = await talosctl(upgrading([]), ['upgrade', '--cluster', '--image', 'registry.example/installer:v1'], {
    nodes: [node],
  })
  expect(code).toBe(1)
  expect(stderr).toContain('no members of the cluster are known')
})

/** Three nodes behind one endpoint, each as `upgrading` has it; the calls they receive, with their addresses. */
function clusterOf(received: unknown[], failing?: string): Method[] {
  const members = [
    { address: '10.6.0.4', type: 'worker' },
    { address: '10.6.0.2', type: 'controlplane' },
    { address: '10.6.0.3', type: 'controlplane' },
  ]
  const restarted = new Set<string>()
  const named = ({ metadata }: Context) => metadata.node?.[0] ?? ''
  return [
    serverStream('cosi.resource.State/List', admins, async function* ({ type }) {
      if (!type.startsWith('Members')) return
      for (const { address, type: machineType } of members)
        yield {
          resource: {
            metadata: { id: address, created: { seconds: 1, nanos: 0 } },
            spec: { yamlSpec: `machineType: ${machineType}\naddresses:\n  - ${address}\n` },
          },
        }
    }),
    serverStream('machine.LifecycleService/Upgrade', admins, async function* (_, context) {
      received.push(`upgrade ${named(context)}`)
      yield { progress: { message: 'writing v1.13.1 to slot B' } }
    }),
    unary('machine.MachineService/Reboot', admins, (_, context) => {
      received.push(`reboot ${named(context)}`)
      restarted.add(named(context))
      return { messages: [{ actorId: 'me' }] }
    }),
    serverStream('cluster.ClusterService/HealthCheck', admins, async function* (_, context) {
      received.push(`health ${named(context)}`)
      yield { message: 'all nodes are healthy' }
    }),
    unary('cosi.resource.State/Get', admins, ({ type, id }, context) => {
      const again = restarted.has(named(context))
      const resource = (spec: string) => ({
        resource: { metadata: { id, created: { seconds: again ? 200 : 100, nanos: 0 } }, spec: { yamlSpec: spec } },
      })
      if (type.startsWith('MachineStatuses')) return resource('stage: running\n')
      if (again && id === '0x20' && named(context) === failing) return resource(`value: '[{"version":"v1.13.1","why":"it hung"}]'\n`)
      throw new RpcError('NotFound', 'there is none')
    }),
  ]
}

const upgradeAll = ['upgrade', '--cluster', '--image', 'registry.example/installer:v1.13.1']

test('a cluster is upgraded node after node, control planes first, each well before the next', async () => {
  const received: unknown[] = []
  const { code, stderr } = await talosctl(clusterOf(received), upgradeAll, { nodes: [node] })
  expect(stderr).toContain('upgrading 10.6.0.2, 10.6.0.3, 10.6.0.4, in this order\n')
  expect(stderr).toContain('all nodes are healthy\n')
  expect(received).toEqual([
    ...['upgrade 10.6.0.2', 'reboot 10.6.0.2', 'health 10.6.0.2'],
    ...['upgrade 10.6.0.3', 'reboot 10.6.0.3', 'health 10.6.0.3'],
    ...['upgrade 10.6.0.4', 'reboot 10.6.0.4'],
  ])
  expect(code).toBe(0)
}, 30_000)

test('a cluster is left alone from the first node on that goes back', async () => {
  const received: unknown[] = []
  const { code, stderr } = await talosctl(clusterOf(received, '10.6.0.3'), upgradeAll, { nodes: [node] })
  expect(stderr).toContain('10.6.0.3')
  expect(stderr).toContain('it went back: v1.13.1 failed: it hung')
  expect(received).not.toContain('upgrade 10.6.0.4')
  expect(code).toBe(1)
}, 30_000)
