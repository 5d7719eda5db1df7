/**
 * `talosctl cluster create qemu`: a cluster whose nodes are emulated machines, used with the commands that any cluster is used
 * with, and upgraded as one whose control plane is alone: drained, back with its data and its place in etcd, and back again to
 * the release before. With ICHOR_VM_STATE the cluster is kept for the next run, until the last step destroys it.
 */
import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { serveImage } from '../support/served-image.ts'
import { dist, forgetState, stateFolder, talosctl } from './machine.ts'
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

async function kubectl(...args: string[]): Promise<string> {
  const argv = [join(dist, 'kubectl'), '--request-timeout', '60s', ...args]
  const child = Bun.spawn(argv, { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', env: { ...process.env, ...env } })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(stderr.trim())
  return stdout
}

/** Polls until the condition holds; an emulated machine takes minutes to restart. */
async function until(what: string, holds: () => Promise<boolean>, deadline: number): Promise<void> {
  for (const end = performance.now() + deadline; ; ) {
    const why = await holds().then(
      (answer) => (answer ? undefined : new Error('it is not so')),
      (error: Error) => error,
    )
    if (!why) return
    if (performance.now() > end) throw new Error(`not in time: ${what}`, { cause: why })
    await Bun.sleep(2000)
  }
}

/** Whether a node runs a release of this slot, and all nodes take pods. */
async function runs(ip: string, slot: 'a' | 'b'): Promise<boolean> {
  const parameters = await ask('-n', ip, 'read', '/proc/cmdline')
  const nodes = await kubectl('get', 'nodes', '--no-headers')
  return (
    parameters.stdout.includes(`ichor.slot=${slot}`) &&
    nodes
      .trim()
      .split('\n')
      .every((line) => / Ready /.test(line))
  )
}
/** What an upgrade has to leave alone. */
const kept = async () => ({
  members: (await ask('-n', nodeOf('controlplane').ip, 'etcd', 'members')).stdout,
  data: await kubectl('get', 'configmap', 'kept', '-o', 'jsonpath={.data.through}'),
})

afterAll(async () => {
  if (process.env.ICHOR_VM_STATE) return
  if (existsSync(join(state, name))) await cluster(['destroy', '--force'])
  forgetState(folder)
  forgetVariants()
}, 5 * minutes)

test(
  'machines are made, installed from the image, and become a healthy cluster',
  async () => {
    const size = ['--controlplanes', '1', '--workers', '1', '--memory', '3.5GiB', '--memory-workers', '2GiB', '--disks', 'virtio:8GiB']
    if (existsSync(join(state, name, 'cluster.json'))) return
    const mirror = ['--cidr', network.cidr, '--registry-mirror', `registry.test=http://${network.gateway}:${registryPort}`]
    const made = await cluster(['create', 'qemu', ...size, ...mirror, '--wait-timeout', '100m'], 110 * minutes)
    if (made.code !== 0) console.log(made.stderr)
    expect(made.code).toBe(0)
    expect(made.stderr).toContain('kubeconfig: context')
    await kubectl('create', 'configmap', 'kept', '--from-literal=through=upgrades')
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
  'all of them are upgraded by one command from a registry: drained, marked good when they are ready again, and let back in',
  async () => {
    const archive = await makeVariant(join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-installer-amd64.tar'), 'good')
    const where = { reference, folder: join(folder, 'registry'), hostname: network.gateway, port: registryPort }
    await using _ = await serveImage(archive, where)
    const [first, second] = [nodeOf('controlplane'), nodeOf('worker')]
    const before = await kept()
    const missing = reference.replace(':good', ':missing')
    const failed = await talosctl(['-n', first.ip, 'upgrade', '--image', missing], env, 30 * minutes)
    expect(failed.stderr).toMatch(new RegExp(`pull "${missing}": .*; nothing was changed`))
    expect(failed.code).toBe(1)
    const dry = await talosctl(['-n', first.ip, 'upgrade', '--image', reference, '--dry-run'], env, 30 * minutes)
    expect(dry.stdout).toMatch(/ok\s+etcd\s+etcd has no other voting member/)
    expect(dry.code).toBe(0)
    const command = ['-n', first.ip, 'upgrade', '--cluster', '--image', reference, '--timeout', '60m']
    const upgraded = await talosctl(command, env, 120 * minutes)
    if (upgraded.code !== 0) console.log(upgraded.stderr)
    expect(upgraded.code).toBe(0)
    for (const ip of [first.ip, second.ip]) {
      expect(upgraded.stderr).toMatch(new RegExp(`${ip}.*pulling "${reference}"`))
      expect(upgraded.stderr).toContain(`${ip}: drained`)
      expect(upgraded.stderr).toMatch(new RegExp(`${ip}.*marked good`))
      await until(`${ip} runs the other release`, () => runs(ip, 'b'), 10 * minutes)
    }
    expect(upgraded.stderr.indexOf('marked good')).toBeLessThan(upgraded.stderr.indexOf(`${second.ip}: pulling`))
    expect(await kubectl('get', 'nodes', '--no-headers')).not.toContain('SchedulingDisabled')
    expect(await kept()).toEqual(before)
  },
  155 * minutes,
)

test(
  'the control plane goes back to the release before, which proves itself as well',
  async () => {
    const { ip } = nodeOf('controlplane')
    const before = await kept()
    const back = await ask('-n', ip, 'rollback')
    expect(back.code).toBe(0)
    await until('the release before runs', () => runs(ip, 'a'), 30 * minutes)
    await until('the trial is over', async () => !(await ask('-n', ip, 'get', 'metakeys')).stdout.includes('0x06'), 40 * minutes)
    expect(await kept()).toEqual(before)
  },
  80 * minutes,
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
