/**
 * A cluster in a container engine through the Docker Engine API: Podman as root, with the image of the system. It needs
 * `bun tests/cluster/engine/prepare.ts`, `bun rootfs/build.ts --fast` and `./mkimage.sh --only oci --fast`.
 */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nodeImage } from '../../../src/release.ts'
import { eventually, succeeded, TestCluster } from '../cluster.ts'
import { Podman } from './podman.ts'

const cluster = new TestCluster('engine')
const podman = new Podman(cluster.home)
const archive = join(import.meta.dir, '../../../dist', nodeImage.file)

beforeAll(async () => {
  await podman.start()
  cluster.env.DOCKER_HOST = `unix://${podman.socket}`
}, 60_000)
afterAll(async () => {
  await cluster.destroy()
  await podman.end()
  cluster.close()
}, 180_000)

const create = (...args: string[]) =>
  cluster.talosctl('cluster', 'create', 'docker', '--name', 'engine', '--wait-timeout', '6m', '--image', archive, ...args)

/** Prints the consoles of nodes for the reader of a failure. */
async function withConsoles<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    for (const { name } of cluster.nodes()) {
      const { stdout, stderr } = await podman.run('logs', '--tail', '60', name)
      console.log(`console of ${name}:\n${stdout}${stderr}`)
    }
    throw error
  }
}

test('a cluster of the image becomes healthy, and every client reaches it through published ports', async () => {
  const { stderr } = await withConsoles(async () => succeeded(await create()))
  console.log(stderr)
  expect(stderr).toMatch(/engine: Libpod\/\S+ \(linux\) at/)
  expect(stderr).toContain('health: OK')
  const nodes = await cluster.objects('get', 'nodes')
  const ready = nodes.items.map(({ metadata, status }) => [metadata.name, status.conditions?.find(({ type }) => type === 'Ready')?.status])
  expect(ready).toEqual([
    ['engine-controlplane-1', 'True'],
    ['engine-worker-1', 'True'],
  ])
  const { machineApi, kubernetes } = cluster.record()
  expect(readFileSync(cluster.env.KUBECONFIG ?? '', 'utf8')).toContain(`https://127.0.0.1:${kubernetes.hostPort}`)
  expect(readFileSync(cluster.env.TALOSCONFIG ?? '', 'utf8')).toContain(`127.0.0.1:${machineApi.hostPort}`)
}, 480_000)

test('members know each other, health holds, and show prints the nodes', async () => {
  const [first, worker] = cluster.nodes()
  const members = succeeded(await cluster.on(first?.ip ?? '', 'get', 'members')).stdout
  expect(members).toContain('engine-controlplane-1')
  expect(members).toContain('engine-worker-1')
  expect(succeeded(await cluster.on(worker?.ip ?? '', 'version')).stdout).toContain(`NODE:        ${worker?.ip}`)
  succeeded(await cluster.talosctl('health', '-n', first?.ip ?? ''))
  const shown = succeeded(await cluster.talosctl('cluster', 'show', '--name', 'engine')).stdout
  expect(shown).toMatch(/PROVISIONER +docker/)
  expect(shown).toMatch(/engine-worker-1 +worker +10\./)
}, 120_000)

test('a worker that reboots comes back with what it had', async () => {
  const worker = cluster.nodes()[1]
  const boot = async () => (await cluster.objects('get', 'nodes')).items[1]?.status.nodeInfo?.bootID
  const before = await boot()
  succeeded(await cluster.on(worker?.ip ?? '', 'reboot', '--wait=false'))
  await withConsoles(() =>
    eventually(async () => {
      expect(await boot()).not.toBe(before)
      const node = (await cluster.objects('get', 'nodes')).items[1]
      expect(node?.status.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True')
    }, 150),
  )
}, 180_000)

test('a worker leaves in good order, and nothing of its container stays', async () => {
  succeeded(await create('--workers', '0', '--yes'))
  expect((await cluster.objects('get', 'nodes')).items.map(({ metadata }) => metadata.name)).toEqual(['engine-controlplane-1'])
  expect((await podman.lines('ps', '--all', '--format', '{{.Names}}')).sort()).toEqual(['engine-controlplane-1', 'engine-discovery'])
}, 300_000)

test('destroy leaves nothing in the engine, in files of clients, and in the folder', async () => {
  succeeded(await cluster.talosctl('cluster', 'destroy', '--name', 'engine'))
  expect(await podman.lines('ps', '--all', '--quiet')).toEqual([])
  expect(await podman.lines('volume', 'ls', '--quiet')).toEqual([])
  expect(await podman.lines('network', 'ls', '--quiet', '--filter', 'label=talos.owned=true')).toEqual([])
  expect(readdirSync(cluster.state)).toEqual([])
  expect(readFileSync(cluster.env.KUBECONFIG ?? '', 'utf8')).not.toContain('engine')
}, 120_000)
