/**
 * From an installed machine to a cluster: bootstrap, the pods of kube-system, a selection of the Kubernetes conformance suite, and
 * a reboot. With ICHOR_VM_STATE what was reached
 * is kept, and the next run of the story continues from there.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { serveCache } from '../../src/programs/talosctl/image-cache/serve.ts'
import { conformanceImages, imageRegistry } from '../conformance/images.ts'
import { type ConformancePrograms, conformancePrograms } from '../conformance/programs.ts'
import { exactly, runSuite } from '../conformance/suite.ts'
import { testInstallation } from './installation.ts'
import { dist } from './machine.ts'
import { apiServer } from './one-node.ts'

const minutes = 60_000
const registryPort = 5079
const mirrors = { machine: { registries: { mirrors: { [imageRegistry]: { endpoints: [`http://10.0.2.2:${registryPort}`] } } } } }
const on = testInstallation('kube-system', {
  outside: true,
  flags: ['--config-patch', JSON.stringify(mirrors), '--config-patch', '{"cluster":{"allowSchedulingOnControlPlanes":true}}'],
})
/** Tests of the suite that need one node, and reach it by the API server alone. */
const chosen = readFileSync(join(import.meta.dir, '../conformance/one-node.txt'), 'utf8')
  .trimEnd()
  .split('\n')
let programs: ConformancePrograms
let registry: { close(): Promise<void> } | undefined

beforeAll(async () => {
  programs = await conformancePrograms()
  const { folder } = await conformanceImages(programs)
  registry = serveCache({ folder, hostname: '127.0.0.1', port: registryPort, domains: [imageRegistry] })
}, 60 * minutes)
afterAll(() => registry?.close())

test.skipIf(on.done('bootstrapped'))(
  'a cluster begins on it',
  async () => {
    await on.machine.outputs(() => on.admin('service', 'etcd'), /Preparing|Running|join|bootstrap/i, 20 * minutes)
    await on.machine.until('bootstrap is taken', async () => (await on.admin('bootstrap')).code === 0, 10 * minutes)
    on.remember('bootstrapped')
  },
  80 * minutes,
)

test(
  'and the pods of kube-system run',
  async () => {
    await on.machine.outputs(() => on.admin('services'), /etcd\s+Running\s+OK/, 20 * minutes)
    await on.machine.until(
      'a kubeconfig',
      async () => (await on.admin('kubeconfig', '--force', on.path('kubeconfig'))).code === 0,
      20 * minutes,
    )
    const server = `https://127.0.0.1:${on.machine.ports.get(apiServer)}`
    const config = readFileSync(on.path('kubeconfig'), 'utf8').replace(/server: \S+/, `server: ${server}`)
    writeFileSync(on.path('kubeconfig'), config, { mode: 0o600 })
    const running = ['coredns', 'kube-apiserver', 'kube-controller-manager', 'kube-flannel', 'kube-proxy', 'kube-scheduler']
    await on.machine.until(
      'kube-system runs',
      async () => {
        const pods = await kubectl('--namespace', 'kube-system', 'get', 'pods', '--no-headers')
        const waits = running.filter((name) => !new RegExp(`^${name}\\S*\\s+(\\d+)/\\1\\s+Running`, 'm').test(pods))
        if (waits.length > 0) throw new Error(`waiting for ${waits.join(', ')}:\n${pods}`)
        return true
      },
      30 * minutes,
    )
    expect(await kubectl('get', 'nodes', '--no-headers')).toMatch(/\sReady\s/)
  },
  90 * minutes,
)

test(
  'a selection of the conformance suite passes on it',
  async () => {
    const specs = await runSuite(programs, on.path('kubeconfig'), { focus: chosen.map(exactly), procs: 1 }, on.path('conformance'))
    expect(specs.map(({ name, passed, reason }) => (passed ? name : `${name}: ${reason}`)).sort()).toEqual([...chosen].sort())
  },
  180 * minutes,
)

test(
  'a reboot by the API brings it back from the disk as it was',
  async () => {
    const identity = (await on.admin('get', 'identity', '-o', 'yaml')).stdout
    on.machine.forget()
    expect((await on.admin('reboot', '--mode', 'powercycle', '--wait=false')).code).toBe(0)
    await on.machine.shows(/sequence=reboot phase=volumeFinalize /, 10 * minutes)
    await on.machine.shows(/machine configuration found.*source=state/, 15 * minutes)
    await on.machine.outputs(() => on.admin('services'), /etcd\s+Running\s+OK/, 30 * minutes)
    expect((await on.admin('get', 'identity', '-o', 'yaml')).stdout.match(/nodeId: .*/)?.[0]).toBe(identity.match(/nodeId: .*/)?.[0])
  },
  60 * minutes,
)

async function kubectl(...args: string[]): Promise<string> {
  const argv = [join(dist, 'kubectl'), '--kubeconfig', on.path('kubeconfig'), '--request-timeout', '60s', ...args]
  const child = Bun.spawn(argv, { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(stderr.trim())
  return stdout
}
