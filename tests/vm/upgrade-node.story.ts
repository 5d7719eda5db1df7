/**
 * An upgrade of a node that works for a cluster: its release comes from a registry, it is drained, upgraded, back with its data
 * and its place in etcd, and back again to the release before. The node is the only control plane, so that its etcd has nobody
 * to lean on.
 */
import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { dist, forgetState, type Result, stateFolder, talosctl } from './machine.ts'
import { serveInstaller } from './registry.ts'
import { forgetVariants, makeVariant } from './variants.ts'

const minutes = 60_000
const folder = stateFolder('upgrade-node')
const name = 'upgraded'
const state = join(folder, 'clusters')
const home = join(folder, 'home')
const env = { HOME: home, TALOSCONFIG: join(home, 'talosconfig'), KUBECONFIG: join(home, 'kubeconfig') }
mkdirSync(home, { recursive: true })
const installer = join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-installer-amd64.tar')
/** The registry is on this host, which the machines know as their gateway. */
const network = { cidr: '10.68.0.0/24', gateway: '10.68.0.1' }
const registryPort = 5068
const reference = 'registry.test/ichor/installer:good'
const cluster = (args: readonly string[], timeout?: number) =>
  talosctl(['cluster', ...args, '--name', name, '--state', state], env, timeout)

function address(): string {
  const record = JSON.parse(readFileSync(join(state, name, 'cluster.json'), 'utf8'))
  return record.nodes.find((node: { role: string }) => node.role === 'controlplane').ip
}
const ask = (args: readonly string[], timeout?: number) => talosctl(['--nodes', address(), ...args], env, timeout)

async function kubectl(...args: string[]): Promise<string> {
  const argv = [join(dist, 'kubectl'), '--request-timeout', '60s', ...args]
  const child = Bun.spawn(argv, { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', env: { ...process.env, ...env } })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(stderr.trim())
  return stdout
}

/** Asks until an answer is as it should be; a machine under emulation takes minutes to come back. */
async function until<T>(what: string, act: () => Promise<T | false>, deadline: number): Promise<T> {
  for (const end = performance.now() + deadline; ; ) {
    let why: unknown
    try {
      const answer = await act()
      if (answer) return answer
    } catch (error) {
      why = error
    }
    if (performance.now() > end) throw new Error(`not in time: ${what}`, { cause: why })
    await Bun.sleep(2000)
  }
}

const slot = (wanted: 'a' | 'b') =>
  until(`slot ${wanted}`, async () => (await ask(['read', '/proc/cmdline'])).stdout.includes(`ichor.slot=${wanted}`), 30 * minutes)
const ready = () => until('the node is ready', async () => / Ready /.test(await kubectl('get', 'nodes', '--no-headers')), 40 * minutes)
const fine = (result: Result) => {
  if (result.code !== 0) console.log(result.stderr)
  expect(result.code).toBe(0)
}

afterAll(async () => {
  if (process.env.ICHOR_VM_STATE) return
  if (existsSync(join(state, name))) await cluster(['destroy', '--force'])
  forgetState(folder)
  forgetVariants()
}, 5 * minutes)

test(
  'a control plane is made',
  async () => {
    if (existsSync(join(state, name, 'cluster.json'))) return
    const size = ['--controlplanes', '1', '--workers', '0', '--memory', '4GiB', '--disks', 'virtio:12GiB']
    const mirror = `registry.test=http://${network.gateway}:${registryPort}`
    const flags = [...size, '--cidr', network.cidr, '--registry-mirror', mirror, '--wait-timeout', '100m']
    fine(await cluster(['create', 'qemu', ...flags], 110 * minutes))
    await kubectl('create', 'configmap', 'kept', '--from-literal=through=upgrades')
  },
  115 * minutes,
)

test(
  'it is upgraded: drained first, marked good when it is ready again, and let back in',
  async () => {
    await ready()
    const members = (await ask(['etcd', 'members'])).stdout
    const archive = await makeVariant(installer, 'good')
    await using _ = await serveInstaller(archive, {
      reference,
      folder: join(folder, 'registry'),
      hostname: network.gateway,
      port: registryPort,
    })
    const dry = await ask(['upgrade', '--image', reference, '--dry-run'], 20 * minutes)
    expect(dry.stdout).toMatch(/ok\s+etcd\s+etcd has no other voting member/)
    fine(dry)
    const upgraded = await ask(['upgrade', '--image', reference, '--timeout', '60m'], 80 * minutes)
    fine(upgraded)
    expect(upgraded.stderr).toContain(`pulling "${reference}"`)
    expect(upgraded.stderr).toContain('drained')
    expect(upgraded.stderr).toContain('marked good')
    await slot('b')
    await ready()
    expect(await kubectl('get', 'nodes', '--no-headers')).not.toContain('SchedulingDisabled')
    expect((await ask(['etcd', 'members'])).stdout).toBe(members)
    expect(await kubectl('get', 'configmap', 'kept', '-o', 'jsonpath={.data.through}')).toBe('upgrades')
  },
  150 * minutes,
)

test(
  'it goes back to the release before, which proves itself as well',
  async () => {
    fine(await ask(['rollback']))
    await slot('a')
    await ready()
    await until('the trial is over', async () => !(await ask(['get', 'metakeys'])).stdout.includes('0x06'), 40 * minutes)
    expect(await kubectl('get', 'configmap', 'kept', '-o', 'jsonpath={.data.through}')).toBe('upgrades')
  },
  120 * minutes,
)
