/**
 * A worker whose EPHEMERAL the control plane of its cluster opens: it is installed and starts from its disk, while the control plane
 * is away the volume stays locked and the reason is shown, and in another board the disk opens as before. The control plane is a node
 * in a container on this host. With ICHOR_VM_STATE the disk of an ended run is kept, but not its cluster.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { succeeded, TestCluster } from '../../cluster/cluster.ts'
import { disk, dist, forgetState, stateFolder, TestMachine, uefi } from '../machine.ts'

const folder = stateFolder('sibling')
const path = (name: string) => join(folder, name)
const minutes = 60_000
const cluster = new TestCluster('sibling')
let machine: TestMachine | undefined

async function powerOn(board: string, cdrom?: string): Promise<TestMachine> {
  await machine?.unplug()
  machine = await TestMachine.start({
    console: path('console.log'),
    cdrom,
    disks: [disk(path('system.img'), 8 * 1024, 'virtio', 'system')],
    firmware: uefi(folder),
    memory: 2304,
    restarts: true,
    smbios: [`type=1,uuid=${board}`],
    // The control plane is reached through the host.
    outside: true,
  })
  return machine
}

beforeAll(async () => {
  console.log(`console: ${path('console.log')}`)
  const keys = { apiVersion: 'v1alpha1', kind: 'SiblingKeysConfig', keys: [randomBytes(32).toString('base64')] }
  await cluster.create('--workers', '1', '--config-patch-control-plane', JSON.stringify(keys))
}, 5 * minutes)
afterAll(async () => {
  await machine?.unplug()
  await cluster.end()
  forgetState(folder)
}, 2 * minutes)

/** talosctl as the administrator of the cluster, against the machine. */
const on = (here: TestMachine, ...args: string[]) =>
  cluster.talosctl('--endpoints', `localhost:${here.port}`, '--nodes', 'localhost', ...args)
const ephemeral = (here: TestMachine) => on(here, 'get', 'volumestatus', 'EPHEMERAL', '-o', 'yaml')
const isOpen = async (here: TestMachine): Promise<void> => {
  const status = await here.outputs(() => ephemeral(here), /phase: ready[\s\S]*configuredEncryptionKeys:\s+- kms/, 45 * minutes)
  expect(status).toContain('encryptionSlot: 0')
  expect(status).not.toContain('encryptionFailedSyncs')
}
const controlPlane = () => cluster.nodes().find(({ role }) => role === 'controlplane')?.ip ?? ''
const firstBoard = '0e6f9b8a-51c4-4d35-9f0b-6a2d7c1e8b43'

test(
  'it installs with a volume that the control plane opens',
  async () => {
    const here = await powerOn(firstBoard, join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-amd64.iso'))
    const worker = cluster.nodes().find(({ role }) => role === 'worker')?.ip ?? ''
    const own = path('worker.yaml')
    writeFileSync(own, succeeded(await cluster.on(worker, 'config-history', 'show', '0')).stdout)
    const patches = [
      { machine: { install: { disk: '/dev/vda' }, certSANs: ['localhost'], time: { disabled: true } } },
      { apiVersion: 'v1alpha1', kind: 'HostnameConfig', hostname: 'sibling-machine', auto: 'off' },
      {
        apiVersion: 'v1alpha1',
        kind: 'VolumeConfig',
        name: 'EPHEMERAL',
        encryption: { provider: 'luks2', keys: [{ slot: 0, kms: { endpoint: 'sibling://' } }] },
      },
    ].flatMap((patch) => ['--patch', JSON.stringify(patch)])
    const file = path('machine.yaml')
    succeeded(await cluster.talosctl('machineconfig', 'patch', own, ...patches, '--output', file))
    await here.shows(/maintenance: waiting for a machine configuration/, 30 * minutes)
    await here.shows(/service=apid .*"Health check successful"/, 30 * minutes)
    await here.takes(file, 10 * minutes)
    await here.shows(/sequence=install phase=stopEverything /, 45 * minutes)
    here.forget()
    await here.shows(/machine configuration found.*source=state/, 30 * minutes)
    await isOpen(here)
    const log = succeeded(await cluster.on(controlPlane(), 'logs', 'trustd')).stdout
    expect(log).toContain('key sealed node=ephemeral')
  },
  180 * minutes,
)

test(
  'while the control plane is away the volume stays locked, and opens by itself once it answers',
  async () => {
    await cluster.talosctl('cluster', 'stop', '--name', cluster.name)
    const here = await powerOn(firstBoard)
    await here.shows(/volume=EPHEMERAL .*slot 0 \(kms\): no control plane unseals it: /, 45 * minutes)
    await cluster.startAgain()
    await isOpen(here)
  },
  120 * minutes,
)

test(
  'in another board the disk opens as before',
  async () => {
    const here = await powerOn('c1d2a7f4-08b6-4e19-a3c5-94b7d0e6f521')
    await isOpen(here)
    const { stdout } = succeeded(await on(here, 'get', 'systeminformation', '-o', 'yaml'))
    expect(stdout).toContain('c1d2a7f4-08b6-4e19-a3c5-94b7d0e6f521')
  },
  120 * minutes,
)
