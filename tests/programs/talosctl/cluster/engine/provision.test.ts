import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { ClusterRecord } from '../../../../../src/programs/node-supervisor/layout.ts'
import { Engine } from '../../../../../src/programs/talosctl/cluster/engine/client.ts'
import {
  checkEngine,
  consoleOf,
  nodeTrouble,
  provideDiscovery,
  provideNetwork,
  provideNode,
  removeCluster,
  startContainers,
  stopContainers,
} from '../../../../../src/programs/talosctl/cluster/engine/provision.ts'
import { type ClusterRequest, planCluster } from '../../../../../src/programs/talosctl/cluster/plan/plan.ts'
import { EngineDaemon } from '../../../../support/engine/daemon.ts'
import { request } from '../plan/request.ts'

const signal = new AbortController().signal
let daemon = new EngineDaemon()
let engine: Engine
beforeEach(async () => {
  daemon.stop()
  daemon = new EngineDaemon({ images: { 'ichor-node:v1': {} } })
  engine = await Engine.open(daemon.socket, signal)
})
afterEach(() => daemon.stop())

function planned(change: Partial<ClusterRequest> = {}, disableIPv6 = false): ClusterRecord {
  const own = { socket: '/engine.sock', mounts: [], disableIPv6, discoveryAddress: '10.5.0.254' }
  return planCluster(request({ image: 'ichor-node:v1', exposedPorts: [], ...change }), {
    kubernetes: 36443,
    machineApi: 35000,
    engine: own,
  })
}

async function provide(cluster: ClusterRecord): Promise<void> {
  await provideNetwork(engine, cluster)
  await provideDiscovery(engine, cluster)
  for (const node of cluster.nodes) await provideNode(engine, cluster, node, async () => `name: ${node.name}\n`)
}

const names = () => [...daemon.containers.values()].map(({ name, state }) => `${name} ${state}`)
const body = (name: string) => [...daemon.containers.values()].find((one) => one.name === name)?.body

test('a network and the containers of a cluster are those of the tables', async () => {
  const exposed = [
    { hostPort: 8080, nodePort: 30080, protocol: 'tcp' as const },
    { hostPort: 8081, nodePort: 30080, protocol: 'tcp' as const, address: '192.0.2.1' },
  ]
  await provide(planned({ exposedPorts: exposed, hostAddress: '0.0.0.0', mtu: 1400 }))
  expect(daemon.networks.get('demo')?.body).toEqual({
    Name: 'demo',
    Driver: 'bridge',
    CheckDuplicate: true,
    Labels: { 'talos.owned': 'true', 'talos.cluster.name': 'demo' },
    IPAM: { Driver: 'default', Config: [{ Subnet: '10.5.0.0/24', Gateway: '10.5.0.1' }] },
    Options: { 'com.docker.network.driver.mtu': '1400' },
  })
  expect(names()).toEqual(['demo-discovery running', 'demo-controlplane-1 running', 'demo-worker-1 running'])
  expect(body('demo-controlplane-1')).toEqual({
    Image: 'ichor-node:v1',
    Hostname: 'demo-controlplane-1',
    StopSignal: 'SIGTERM',
    Env: ['PLATFORM=container', 'TALOSSKU=2CPU-2048RAM', `USERDATA=${Buffer.from('name: demo-controlplane-1\n').toString('base64')}`],
    Labels: { 'talos.owned': 'true', 'talos.cluster.name': 'demo', 'talos.type': 'controlplane' },
    ExposedPorts: { '50000/tcp': {}, '6443/tcp': {}, '30080/tcp': {} },
    HostConfig: {
      Privileged: true,
      SecurityOpt: ['seccomp:unconfined'],
      ReadonlyRootfs: true,
      NanoCpus: 2_000_000_000,
      Memory: 2 * 1024 ** 3,
      RestartPolicy: { Name: 'on-failure' },
      Sysctls: { 'net.ipv6.conf.all.disable_ipv6': '0' },
      Mounts: [
        { Type: 'tmpfs', Target: '/run' },
        { Type: 'tmpfs', Target: '/system' },
        { Type: 'tmpfs', Target: '/tmp' },
        { Type: 'volume', Target: '/var' },
        { Type: 'volume', Target: '/system/state' },
        { Type: 'volume', Target: '/etc/cni' },
        { Type: 'volume', Target: '/etc/kubernetes' },
        { Type: 'volume', Target: '/usr/libexec/kubernetes' },
        { Type: 'volume', Target: '/opt' },
      ],
      PortBindings: {
        '50000/tcp': [{ HostIp: '127.0.0.1', HostPort: '35000' }],
        '6443/tcp': [{ HostIp: '127.0.0.1', HostPort: '36443' }],
        '30080/tcp': [
          { HostIp: '0.0.0.0', HostPort: '8080' },
          { HostIp: '192.0.2.1', HostPort: '8081' },
        ],
      },
      NetworkMode: 'demo',
    },
    NetworkingConfig: { EndpointsConfig: { demo: { IPAMConfig: { IPv4Address: '10.5.0.2' } } } },
  })
  expect(body('demo-worker-1')).toMatchObject({ ExposedPorts: {}, Labels: { 'talos.type': 'worker' }, HostConfig: { PortBindings: {} } })
})

test('the discovery server has no rights and no configuration; without discovery it is not there', async () => {
  await provide(planned())
  expect(body('demo-discovery')).toMatchObject({ User: '65534:65534', Cmd: ['discovery', '--listen', '0.0.0.0:3000'] })
  expect(body('demo-discovery')?.HostConfig).toMatchObject({ CapDrop: ['ALL'], ReadonlyRootfs: true })
  expect(body('demo-discovery')?.HostConfig).not.toHaveProperty('Privileged')
  expect(body('demo-discovery')?.NetworkingConfig.EndpointsConfig.demo?.IPAMConfig.IPv4Address).toBe('10.5.0.254')
  await removeCluster(engine, 'demo')
  await provide(planned({ discovery: false }))
  expect(names()).not.toContain('demo-discovery running')
})

test('IPv6 is left as it is on request, and a node without configuration gets none', async () => {
  const cluster = planned({}, true)
  await provideNetwork(engine, cluster)
  for (const node of cluster.nodes) await provideNode(engine, cluster, node, async () => undefined)
  expect(body('demo-worker-1')?.HostConfig).not.toHaveProperty('Sysctls')
  expect(body('demo-worker-1')?.Env).toEqual(['PLATFORM=container', 'TALOSSKU=2CPU-2048RAM'])
})

test('what is there is left alone, what was stopped is started, and what is missing is made', async () => {
  const cluster = planned()
  await provide(cluster)
  await stopContainers(engine, 'demo')
  expect(names()).toEqual(['demo-discovery exited', 'demo-controlplane-1 exited', 'demo-worker-1 exited'])
  await provide(cluster)
  expect(names()).toEqual(['demo-discovery running', 'demo-controlplane-1 running', 'demo-worker-1 running'])
  expect(daemon.bodies('/containers/create')).toHaveLength(3)
  await stopContainers(engine, 'demo')
  await startContainers(engine, cluster)
  expect(names()).toEqual(['demo-discovery running', 'demo-controlplane-1 running', 'demo-worker-1 running'])
  const [first] = daemon.containers.keys()
  daemon.containers.delete([...daemon.containers.keys()].at(-1) ?? '')
  expect(first).toBeDefined()
  await expect(startContainers(engine, cluster)).rejects.toThrow(
    'the container engine has no demo-worker-1: make what is missing with "talosctl cluster create docker --name demo"',
  )
})

test('a cluster goes by its labels, and nothing of others does', async () => {
  await provide(planned())
  await provide(planned({ name: 'other' }))
  expect(await removeCluster(engine, 'demo')).toBe(3)
  expect(names()).toEqual(['other-discovery running', 'other-controlplane-1 running', 'other-worker-1 running'])
  expect([...daemon.networks.keys()]).toEqual(['other'])
  expect(await removeCluster(engine, 'demo')).toBe(0)
})

test('a network of the same name must be that of the cluster, with its subnet', async () => {
  await provideNetwork(engine, planned())
  await provideNetwork(engine, planned())
  expect(daemon.bodies('/networks/create')).toHaveLength(1)
  const kept = daemon.networks.get('demo')
  if (kept) kept.body.IPAM.Config = [{ Subnet: '10.6.0.0/24', Gateway: '10.6.0.1' }]
  await expect(provideNetwork(engine, planned())).rejects.toThrow(
    'the container engine has network "demo" with 10.6.0.0/24, not 10.5.0.0/24: name that with --subnet',
  )
  if (kept) kept.body.Labels = {}
  await expect(provideNetwork(engine, planned())).rejects.toThrow('has a network "demo" of somebody else')
})

test('a node that ended, or ends again and again, is reported with its last line', async () => {
  await provide(planned())
  expect(await nodeTrouble(engine, 'demo-worker-1')).toBeUndefined()
  const kept = [...daemon.containers.values()].find(({ name }) => name === 'demo-worker-1')
  if (!kept) throw new Error('no worker')
  Object.assign(kept, { log: 'init starts\ninit dies of an error\n', restarts: 3 })
  expect(await nodeTrouble(engine, 'demo-worker-1')).toBe(
    'container "demo-worker-1" was started 3 times again; its last line: init dies of an error',
  )
  Object.assign(kept, { state: 'exited', exitCode: 64 })
  expect(await nodeTrouble(engine, 'demo-worker-1')).toBe(
    'container "demo-worker-1" ended with status 64; its last line: init dies of an error',
  )
  expect(await consoleOf(engine, 'demo-worker-1', 10)).toBe('init starts\ninit dies of an error\n')
  expect(await nodeTrouble(engine, 'demo-worker-2')).toBe('there is no container "demo-worker-2" any more')
})

test('an engine without root, and one of another system, are refused in one line', async () => {
  await checkEngine(engine)
  for (const [options, line] of [
    [{ security: ['name=seccomp,profile=default', 'name=rootless'] }, 'is rootless, and nodes mount file systems'],
    [{ os: 'windows' }, 'runs windows containers: switch it to Linux'],
  ] as const) {
    const other = new EngineDaemon(options)
    await expect(Engine.open(other.socket, signal).then(checkEngine)).rejects.toThrow(line)
    other.stop()
  }
})
