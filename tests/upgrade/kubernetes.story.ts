/**
 * A cluster of three control planes and a worker is upgraded from the previous minor of Kubernetes, whose images it pulls from a
 * registry, to the release inside: shown by a dry run, interrupted, rolled back, and then, interrupted once more, completed while
 * clients write and read. Compiling the previous minor takes many minutes, so the test command leaves it out:
 * `sudo bun tests/upgrade/all.ts`, after `bun rootfs/build.ts`.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { kubernetesReleases } from '../../rootfs/build/kubernetes.ts'
import { imagesFolder } from '../../rootfs/build/kubernetes-images.ts'
import { serveCache } from '../../src/programs/talosctl/image-cache/serve.ts'
import { succeeded, TestCluster } from '../cluster/cluster.ts'
import { figure } from '../support/figures.ts'
import { Traffic, unavailable } from './traffic.ts'
import { interrupted, upgrade } from './upgrade-kubernetes.ts'

const [inside, previous] = kubernetesReleases
if (!previous) throw new Error('rootfs/build/kubernetes.ts lists no older release')
const registries = ['registry.k8s.io', 'ghcr.io']
const gateway = '10.94.0.1'
const cluster = new TestCluster('upgrade')
let registry: ReturnType<typeof serveCache> | undefined

beforeAll(async () => {
  const build = ['rootfs/build.ts', '--kubernetes', previous.version, '--only', 'kubernetes-images']
  const child = Bun.spawn([process.execPath, ...build], { cwd: join(import.meta.dir, '../..'), stdout: 'inherit', stderr: 'inherit' })
  expect(await child.exited).toBe(0)
  registry = serveCache({ folder: imagesFolder(previous), hostname: '0.0.0.0', port: 0, domains: registries })
  const mirror = `http://${gateway}:${new URL(registry.url).port}`
  const mirrors = registries.flatMap((name) => ['--registry-mirror', `${name}=${mirror}`])
  const version = ['--kubernetes-version', previous.version]
  await cluster.create('--cidr', '10.94.0.0/24', '--controlplanes', '3', '--workers', '1', ...version, ...mirrors)
})
afterAll(async () => {
  await cluster.destroy()
  cluster.close()
  await registry?.close()
})

/** The release of the API servers, and those of the kubelets. */
async function running(): Promise<{ server: string; kubelets: string[] }> {
  const { stdout } = succeeded(await cluster.kubectl(['get', '--raw', '/version']))
  const { items } = await cluster.objects('get', 'nodes')
  const kubelets = items.map(({ status }) => (status.nodeInfo as { kubeletVersion?: string } | undefined)?.kubeletVersion ?? '')
  return { server: JSON.parse(stdout).gitVersion, kubelets }
}

const versions = (kubernetes: string) => ({ server: `v${kubernetes}`, kubelets: Array(4).fill(`v${kubernetes}`) })

test('the cluster begins with the previous minor, on nodes that have the newest inside', async () => {
  expect(await running()).toEqual(versions(previous.version))
})

test('a dry run names every step and changes nothing', async () => {
  const { stdout } = succeeded(await upgrade(cluster, '--to', inside.version, '--dry-run'))
  expect(stdout.match(/^kube\S+ of upgrade-\S+:$/gm)).toHaveLength(16)
  expect(stdout).toContain(`+          image: registry.k8s.io/kube-proxy:v${inside.version}`)
  expect(await running()).toEqual(versions(previous.version))
})

test('an upgrade that is cut off midway is rolled back', async () => {
  await interrupted(cluster, /kube-controller-manager of upgrade-controlplane-2 .*: healthy/, '--to', inside.version)
  expect((await running()).server).toBe(`v${inside.version}`)
  const began = performance.now()
  const { stderr } = succeeded(await upgrade(cluster, '--rollback'))
  figure('kubernetes', 'rollback of an upgrade with 5 of 16 steps done', seconds(performance.now() - began))
  expect(stderr).toContain(`Kubernetes is back at ${previous.version}`)
  expect(await running()).toEqual(versions(previous.version))
})

test('it is upgraded over an interruption, no acknowledged write is lost, and the API is away for less than five seconds', async () => {
  const servers = cluster
    .nodes()
    .filter(({ role }) => role === 'controlplane')
    .map(({ ip }) => `https://${ip}:6443`)
  expect(servers).toHaveLength(3)
  const kubeconfig = join(cluster.home, 'kubeconfig')
  const direct = new Traffic('direct', kubeconfig, servers)
  const balanced = new Traffic('balanced', kubeconfig, [`https://${gateway}:6443`])
  const clients = { 'a client that knows the three servers': direct, 'a client of the one balanced endpoint': balanced }
  for (const client of Object.values(clients)) client.start()

  const began = performance.now()
  await interrupted(cluster, /kube-scheduler of upgrade-controlplane-1 .*: healthy/, '--to', inside.version)
  const { stderr } = succeeded(await upgrade(cluster, '--to', inside.version))
  expect(stderr.match(/: has it already, and is healthy$/gm)?.length).toBeGreaterThanOrEqual(7)
  figure(
    'kubernetes',
    `upgrade of 3 + 1 from ${previous.version} to ${inside.version}, interrupted once`,
    seconds(performance.now() - began),
  )

  for (const [who, client] of Object.entries(clients)) {
    const account = await client.stop()
    const { acknowledged, interruptions, failedRequests } = account
    const times = `${interruptions.length} interruptions, the longest ${seconds(Math.max(0, ...interruptions))}`
    figure('kubernetes', `${who}: without the API in all`, `${seconds(unavailable(account))} (${times}, ${failedRequests} failed requests)`)
    const written = await client.written()
    const missing = acknowledged.filter((name) => written.get(name) !== `content of ${name}`)
    figure('kubernetes', `${who}: acknowledged writes, of which lost`, `${acknowledged.length}, ${missing.length}`)
    expect(acknowledged.length).toBeGreaterThan(100)
    expect([missing, account.lost]).toEqual([[], []])
    expect(unavailable(account)).toBeLessThan(5000)
  }
  expect(await running()).toEqual(versions(inside.version))
})

test('the upgraded cluster is healthy', async () => {
  const [first] = cluster.nodes()
  succeeded(await cluster.talosctl('-n', first?.ip ?? '', 'health', '--wait-timeout', '2m'))
})

const seconds = (milliseconds: number) => `${(milliseconds / 1000).toFixed(1)} s`
