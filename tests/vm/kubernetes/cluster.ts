/**
 * A cluster on an installed machine: bootstrap, the pods of kube-system, images from a registry on the host. Stories that give the
 * same name share one state, so with ICHOR_VM_STATE the second one finds the machine installed and its cluster there.
 */
import { afterAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { serveCache } from '../../../src/programs/talosctl/image-cache/serve.ts'
import { conformanceImages, imageRegistry } from '../../conformance/images.ts'
import { type ConformancePrograms, conformancePrograms } from '../../conformance/programs.ts'
import { type Installed, testInstallation } from '../installation.ts'
import { dist } from '../machine.ts'
import { apiServer } from '../one-node.ts'

const minutes = 60_000
const registryPort = 5079
/** Images come from the host. Pods in user namespaces need some, which a hardened machine has none of. */
const basis = {
  machine: {
    registries: { mirrors: { [imageRegistry]: { endpoints: [`http://10.0.2.2:${registryPort}`] } } },
    sysctls: { 'user.max_user_namespaces': '11255' },
  },
  cluster: { allowSchedulingOnControlPlanes: true },
}

/** A cluster of one machine. */
export interface InstalledCluster {
  readonly on: Installed
  /** Runs kubectl as the administrator and returns its output. Throws its error output. */
  kubectl(...args: string[]): Promise<string>
}

/** What a story's cluster has besides. */
interface ClusterNeeds {
  /** What its state is kept under. Default: `kube-system`. */
  readonly story?: string
  /** Empty disks besides that of the system: mebibytes by serial number. */
  readonly disks?: Readonly<Record<string, number>>
  /** More of the machine configuration. */
  readonly patch?: object
}

/** Declares the steps to a cluster on a machine. */
export function testCluster({ story = 'kube-system', disks = {}, patch = {} }: ClusterNeeds = {}): InstalledCluster {
  const on = testInstallation(story, {
    outside: true,
    disks,
    flags: [basis, patch].flatMap((each) => ['--config-patch', JSON.stringify(each)]),
  })
  const kubectl = (...args: string[]) =>
    run(join(dist, 'kubectl'), '--kubeconfig', on.path('kubeconfig'), '--request-timeout', '60s', ...args)

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
      await on.machine.until('kube-system runs', () => kubeSystemRuns(kubectl), 30 * minutes)
      expect(await kubectl('get', 'nodes', '--no-headers')).toMatch(/\sReady\s/)
    },
    90 * minutes,
  )

  return { on, kubectl }
}

/** Declares the step that serves the images of the conformance suite to the cluster, whose programs are returned once they are there. */
export function testImages(): () => ConformancePrograms {
  let programs: ConformancePrograms
  let registry: { close(): Promise<void> } | undefined
  afterAll(() => registry?.close())
  test(
    'the images of the conformance suite are served to it',
    async () => {
      programs = await conformancePrograms()
      const { folder } = await conformanceImages(programs)
      registry = serveCache({ folder, hostname: '127.0.0.1', port: registryPort, domains: [imageRegistry] })
    },
    60 * minutes,
  )
  return () => programs
}

const components = ['coredns', 'kube-apiserver', 'kube-controller-manager', 'kube-flannel', 'kube-proxy', 'kube-scheduler']

/** Throws with the list of pods while one of the components does not run. */
async function kubeSystemRuns(kubectl: InstalledCluster['kubectl']): Promise<boolean> {
  const pods = await kubectl('--namespace', 'kube-system', 'get', 'pods', '--no-headers')
  const waits = components.filter((name) => !new RegExp(`^${name}\\S*\\s+(\\d+)/\\1\\s+Running`, 'm').test(pods))
  if (waits.length > 0) throw new Error(`waiting for ${waits.join(', ')}:\n${pods}`)
  return true
}

async function run(...argv: string[]): Promise<string> {
  const child = Bun.spawn(argv, { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(stderr.trim())
  return stdout
}
