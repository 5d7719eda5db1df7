/** `talosctl cluster create qemu`: a cluster whose nodes are emulated machines, used with the commands that any cluster is used with. */
import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { dist, forgetState, stateFolder, talosctl } from './machine.ts'
import { serveInstaller } from './registry.ts'
import { forgetVariants, makeVariant } from './variants.ts'

const minutes = 60_000
const folder = stateFolder('cluster-qemu')
const name = 'machines'
const state = join(folder, 'clusters')
const home = join(folder, 'home')
const env = { HOME: home, TALOSCONFIG: join(home, 'talosconfig'), KUBECONFIG: join(home, 'kubeconfig') }
mkdirSync(home, { recursive: true })
/** A registry on this host, which the machines know as their gateway. */
const network = { cidr: '10.69.0.0/24', gateway: '10.69.0.1' }
const registryPort = 5069
const reference = 'registry.test/ichor/installer:good'
const cluster = (args: readonly string[], timeout?: number) =>
  talosctl(['cluster', ...args, '--name', name, '--state', state], env, timeout)
const ask = (...args: string[]) => talosctl(args, env)
const record = () => JSON.parse(readFileSync(join(state, name, 'cluster.json'), 'utf8'))
const nodeOf = (role: string): { name: string; ip: string; link: string } =>
  record().nodes.find((node: { role: string }) => node.role === role)

afterAll(async () => {
  if (existsSync(join(state, name))) await cluster(['destroy', '--force'])
  forgetState(folder)
  forgetVariants()
}, 5 * minutes)

test(
  'machines are made, installed from the image, and become a healthy cluster',
  async () => {
    const size = ['--controlplanes', '1', '--workers', '1', '--memory', '3.5GiB', '--memory-workers', '2GiB', '--disks', 'virtio:8GiB']
    const mirror = ['--cidr', network.cidr, '--registry-mirror', `registry.test=http://${network.gateway}:${registryPort}`]
    const made = await cluster(['create', 'qemu', ...size, ...mirror, '--wait-timeout', '100m'], 110 * minutes)
    if (made.code !== 0) console.log(made.stderr)
    expect(made.code).toBe(0)
    expect(made.stderr).toContain('kubeconfig: context')
  },
  115 * minutes,
)

test('the nodes are shown as machines with disks', async () => {
  const shown = await cluster(['show'])
  expect(shown.stdout).toMatch(/PROVISIONER\s+qemu/)
  expect(shown.stdout).toMatch(/machines-controlplane-1\s+controlplane\s+\S+\s+2\.00\s+3\.8 GB\s+8\.6 GB/)
})

test(
  'the commands of any cluster work on them',
  async () => {
    const { ip } = nodeOf('controlplane')
    const services = await ask('-n', ip, 'services')
    expect(services.stdout).toMatch(/kubelet\s+Running\s+OK/)
    const volumes = await ask('-n', ip, 'get', 'volumestatus')
    expect(volumes.stdout).toMatch(/EPHEMERAL\s.*ready/)
    const members = await ask('-n', ip, 'get', 'members')
    expect(members.stdout).toContain(nodeOf('worker').name)
    const console = readFileSync(join(state, name, 'nodes', nodeOf('worker').name, 'console.log'), 'utf8')
    expect(console).toContain('Linux version')
  },
  10 * minutes,
)

test(
  'a machine that restarts comes back from its disk, and is counted',
  async () => {
    const worker = nodeOf('worker')
    const restarted = await talosctl(['-n', worker.ip, 'reboot', '--wait', '--timeout', '30m'], env, 35 * minutes)
    expect(restarted.stderr + restarted.stdout).not.toContain('error')
    expect(restarted.code).toBe(0)
    const status = JSON.parse(readFileSync(join(state, name, 'nodes', worker.name, 'status.json'), 'utf8'))
    expect(status.restarts).toBeGreaterThan(0)
  },
  40 * minutes,
)

test(
  'all of them are upgraded by one command, the control plane first',
  async () => {
    const archive = await makeVariant(join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-installer-amd64.tar'), 'good')
    const where = { reference, folder: join(folder, 'registry'), hostname: network.gateway, port: registryPort }
    await using _ = await serveInstaller(archive, where)
    const [first, second] = [nodeOf('controlplane'), nodeOf('worker')]
    const command = ['-n', first.ip, 'upgrade', '--cluster', '--image', reference, '--timeout', '60m']
    const upgraded = await talosctl(command, env, 120 * minutes)
    if (upgraded.code !== 0) console.log(upgraded.stderr)
    expect(upgraded.code).toBe(0)
    expect(upgraded.stderr.match(/marked good/g)).toHaveLength(2)
    expect(upgraded.stderr.indexOf(first.ip)).toBeLessThan(upgraded.stderr.indexOf(second.ip))
    for (const { ip } of [first, second]) expect((await ask('-n', ip, 'read', '/proc/cmdline')).stdout).toContain('ichor.slot=b')
  },
  125 * minutes,
)

test(
  'destroyed, nothing is left of them',
  async () => {
    const { network, nodes } = record()
    const gone = await cluster(['destroy'])
    expect(gone.stderr).toContain('is gone')
    expect(existsSync(join(state, name))).toBe(false)
    const links = Object.keys(networkInterfaces())
    expect(links).not.toContain(network.bridge)
    for (const { link } of nodes) expect(readdirSync('/sys/class/net')).not.toContain(link)
    const emulators = readdirSync('/proc')
      .filter((pid) => /^\d+$/.test(pid))
      .filter(
        (pid) => existsSync(`/proc/${pid}/cmdline`) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('machines-controlplane-1'),
      )
    expect(emulators).toEqual([])
  },
  5 * minutes,
)
