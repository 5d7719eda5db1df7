/** Commands on clusters in a stand-in engine, as far as they go without nodes that run. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatSecrets } from '../../../../../src/os/config/generate/secrets.ts'
import type { ClusterRecord } from '../../../../../src/programs/node-supervisor/layout.ts'
import { defaultImage } from '../../../../../src/programs/talosctl/cluster/engine/images.ts'
import { EngineDaemon } from '../../../../support/engine/daemon.ts'
import { talosctl } from '../../peer.ts'
import { secrets } from '../../rotation/machines.ts'

let home = ''
let daemon: EngineDaemon
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'ichor-engine-'))
  // Secrets are never made twice, so that nothing here waits for the RSA key of service accounts.
  mkdirSync(join(home, 'clusters/demo'), { recursive: true })
  writeFileSync(join(home, 'clusters/demo/secrets.yaml'), formatSecrets(secrets))
  daemon = new EngineDaemon({ images: { [defaultImage]: { 'dev.ichor.kubernetes.version': 'v1.35.4' } } })
})
afterEach(() => {
  daemon.stop()
  rmSync(home, { recursive: true })
})

const run = (...args: string[]) =>
  talosctl([], args, {
    env: { HOME: home, TALOS_HOME: home, TALOSCONFIG: join(home, 'config'), DOCKER_HOST: `unix://${daemon.socket}` },
  })
/** Nodes that wait in maintenance are all that a stand-in can have. */
const create = (...args: string[]) =>
  run('cluster', 'create', 'docker', '--name', 'demo', '--subnet', '10.213.0.0/24', '--skip-injecting-config', ...args)
/** Nodes are made at the same time, in any order. */
const containers = () => [...daemon.containers.values()].map(({ name, state }) => `${name} ${state}`).sort()
const record = () => JSON.parse(readFileSync(join(home, 'clusters/demo/cluster.json'), 'utf8')) as ClusterRecord
const all = (state: string) => ['controlplane-1', 'discovery', 'worker-1'].map((name) => `demo-${name} ${state}`)

test('create makes network and nodes, show prints their states, stop and start keep them, destroy leaves nothing', async () => {
  const created = await create('-p', '127.0.0.1:18080:30080', '--mount', 'type=tmpfs,target=/mnt')
  expect(created.code).toBe(0)
  expect(created.stderr).toContain(`engine: Libpod/4.3.1 (linux) at ${daemon.socket}`)
  expect(created.stderr).toContain('start up to maintenance')
  expect(containers()).toEqual(all('running'))
  expect(record()).toMatchObject({
    image: defaultImage,
    kubernetes: { version: '1.35.4', port: 6443 },
    engine: { socket: daemon.socket, discoveryAddress: '10.213.0.254', mounts: [{ Type: 'tmpfs', Target: '/mnt' }] },
    nodes: [{ ip: '10.213.0.2', ports: [{ address: '127.0.0.1', hostPort: 18080 }] }, { ip: '10.213.0.3' }],
  })
  const { machineApi, kubernetes } = record()
  expect(readFileSync(join(home, 'config'), 'utf8')).toContain(`- 127.0.0.1:${machineApi.hostPort}`)
  const configuration = readFileSync(join(home, 'clusters/demo/worker.yaml'), 'utf8')
  expect(configuration).toContain('endpoint: https://10.213.0.2:6443')
  expect(configuration).toContain('endpoint: http://10.213.0.254:3000')
  expect(configuration).not.toContain('nameservers')
  const shown = await run('cluster', 'show', '--name', 'demo')
  expect(shown.stdout).toMatch(/PROVISIONER +docker/)
  expect(shown.stdout).toMatch(/NETWORK NAME +demo/)
  expect(shown.stdout).toMatch(new RegExp(`KUBERNETES ENDPOINT +https://127.0.0.1:${kubernetes.hostPort}`))
  const [described] = JSON.parse((await run('cluster', 'show', '--name', 'demo', '-o', 'json')).stdout)
  expect(described).toMatchObject({ provisioner: 'docker', name: 'demo', network: { name: 'demo', cidrs: [expect.any(String)] } })
  expect(described.nodes).toContainEqual(expect.objectContaining({ name: 'demo-worker-1', type: 'worker', state: 'running' }))
  expect((await run('cluster', 'stop', '--name', 'demo')).code).toBe(0)
  expect(containers()).toEqual(all('exited'))
  expect((await run('cluster', 'show', '--name', 'demo')).stdout).toContain('demo-worker-1: exited')
  expect((await run('cluster', 'start', '--name', 'demo', '--no-wait')).code).toBe(0)
  expect(containers()).toEqual(all('running'))
  const logs = join(home, 'logs.tar.gz')
  const destroyed = await run('cluster', 'destroy', '--name', 'demo', '--save-cluster-logs-archive-path', logs)
  expect([destroyed.code, destroyed.stderr]).toEqual([0, expect.stringContaining('cluster "demo" is gone')])
  expect([containers(), [...daemon.networks.keys()], readdirSync(join(home, 'clusters'))]).toEqual([[], [], []])
  expect(existsSync(logs)).toBe(true)
  expect(readFileSync(join(home, 'config'), 'utf8')).not.toContain('demo')
})

test('the same command again changes nothing, more workers are added, fewer must be confirmed', async () => {
  await create()
  const before = daemon.calls.length
  expect((await create()).code).toBe(0)
  expect(daemon.calls.slice(before).filter(({ method }) => method !== 'GET')).toEqual([])
  expect((await create('--workers', '2')).code).toBe(0)
  expect(containers()).toContain('demo-worker-2 running')
  const fewer = await create('--workers', '1')
  expect([fewer.code, fewer.stderr]).toEqual([1, expect.stringContaining('this would remove demo-worker-2 from cluster "demo": add --yes')])
  const plain = await run('cluster', 'create', '--name', 'demo')
  expect(plain.stderr).toContain('consists of containers of Docker or Podman: say "talosctl cluster create docker"')
})

test('containers that no folder knows of are not taken over, and go by force alone', async () => {
  await create()
  rmSync(join(home, 'clusters'), { recursive: true })
  const again = await create()
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('destroy --provisioner docker --force --name demo')])
  expect((await run('cluster', 'destroy', '--provisioner', 'docker', '--name', 'demo')).stderr).toContain('there is no cluster "demo"')
  expect(containers()).toHaveLength(3)
  const forced = await run('cluster', 'destroy', '--provisioner', 'docker', '--name', 'demo', '--force')
  expect([forced.code, containers(), [...daemon.networks.keys()]]).toEqual([0, [], []])
})

test('an engine that is gone keeps a cluster from going silently', async () => {
  await create()
  daemon.stop()
  expect((await run('cluster', 'show', '--name', 'demo')).stdout).toContain('demo-worker-1: the container engine at')
  const destroyed = await run('cluster', 'destroy', '--name', 'demo')
  expect(destroyed.code).not.toBe(0)
  expect(destroyed.stderr).toContain('containers and network of cluster "demo" in the engine at')
  expect(existsSync(join(home, 'clusters/demo/journal'))).toBe(true)
})

test.each([
  [['--ipv6'], '--ipv6: nodes in Docker or Podman have one IPv4 network'],
  [['--restart-with-host'], '--restart-with-host: let the system start the engine'],
  [['--endpoint', '192.0.2.1'], '--endpoint needs a gateway'],
  [['--control-plane-port', '7443'], '--control-plane-port needs a gateway'],
  [['--disks', 'virtio:1GiB'], '--disks is for virtual machines'],
  [['--mount', 'x'], '--mount "x"'],
  [['--image', './none.tar'], '--image "./none.tar": there is no such file'],
])('%j is refused in one line, and nothing is made', async (args, line) => {
  rmSync(join(home, 'clusters'), { recursive: true })
  const { code, stderr } = await create(...args)
  expect([code, stderr]).toEqual([1, expect.stringContaining(line)])
  expect([containers(), existsSync(join(home, 'clusters/demo'))]).toEqual([[], false])
})
