/** A cluster with the previous minor of Kubernetes, whose images its nodes pull from a registry: inside they have the newest. */
import { expect } from 'bun:test'
import { join } from 'node:path'
import { kubernetesReleases } from '../../rootfs/build/kubernetes.ts'
import { imagesFolder } from '../../rootfs/build/kubernetes-images.ts'
import { serveCache } from '../../src/programs/talosctl/image-cache/serve.ts'
import { succeeded, TestCluster } from '../cluster/cluster.ts'
import { figure } from '../support/figures.ts'
import { Traffic, unavailable } from './traffic.ts'

const [newest, older] = kubernetesReleases
if (!older) throw new Error('rootfs/build/kubernetes.ts lists no older release')
const registries = ['registry.k8s.io', 'ghcr.io']

/** The release that nodes have inside, and the one that the cluster begins with. */
export const [inside, previous] = [newest, older]

export class OlderCluster extends TestCluster {
  /** Where the host and the balanced endpoint of the cluster are. */
  readonly gateway: string
  readonly #network: string
  #registry: ReturnType<typeof serveCache> | undefined

  /** The network is the first three numbers of an address, as `10.94.0`. */
  constructor(name: string, network: string) {
    super(name)
    this.#network = network
    this.gateway = `${network}.1`
  }

  /** Builds the images of the previous minor if they are not there, serves them and creates the cluster. */
  async begin(controlPlanes: number, workers: number): Promise<void> {
    const build = ['rootfs/build.ts', '--kubernetes', previous.version, '--only', 'kubernetes-images']
    const child = Bun.spawn([process.execPath, ...build], { cwd: join(import.meta.dir, '../..'), stdout: 'inherit', stderr: 'inherit' })
    expect(await child.exited).toBe(0)
    this.#registry = serveCache({ folder: imagesFolder(previous), hostname: '0.0.0.0', port: 0, domains: registries })
    const mirror = `http://${this.gateway}:${new URL(this.#registry.url).port}`
    await this.create(
      ...['--cidr', `${this.#network}.0/24`, '--kubernetes-version', previous.version],
      ...['--controlplanes', String(controlPlanes), '--workers', String(workers)],
      ...registries.flatMap((name) => ['--registry-mirror', `${name}=${mirror}`]),
    )
  }

  override async end(): Promise<void> {
    await this.destroy()
    this.close()
    await this.#registry?.close()
  }

  /** The address of the first control plane, through which commands work. */
  get first(): string {
    return this.controlPlanes()[0] ?? ''
  }

  controlPlanes(): string[] {
    return this.nodes().flatMap(({ role, ip }) => (role === 'controlplane' ? [ip] : []))
  }

  /** A client that knows these servers, writing and reading from now on. */
  traffic(name: string, servers: readonly string[]): Traffic {
    const client = new Traffic(
      name,
      join(this.home, 'kubeconfig'),
      servers.map((server) => `https://${server}:6443`),
    )
    client.start()
    return client
  }

  /** The release of the API servers, and those of the kubelets. */
  async running(): Promise<{ server: string; kubelets: string[] }> {
    const { stdout } = succeeded(await this.kubectl(['get', '--raw', '/version']))
    const { items } = await this.objects('get', 'nodes')
    const kubelets = items.map(({ status }) => (status.nodeInfo as { kubeletVersion?: string } | undefined)?.kubeletVersion ?? '')
    return { server: JSON.parse(stdout).gitVersion, kubelets }
  }

  /** What `running` returns when everything has a release. */
  all(kubernetes: string): { server: string; kubelets: string[] } {
    return { server: `v${kubernetes}`, kubelets: Array(this.nodes().length).fill(`v${kubernetes}`) }
  }
}

/** Ends the client, records its figures and checks that no write that was acknowledged is lost; returns the time without the API. */
export async function keptEveryWrite(story: string, who: string, client: Traffic): Promise<number> {
  const account = await client.stop()
  const { acknowledged, interruptions, failedRequests } = account
  const times = `${interruptions.length} interruptions, the longest ${seconds(Math.max(0, ...interruptions))}`
  figure(story, `${who}: without the API in all`, `${seconds(unavailable(account))} (${times}, ${failedRequests} failed requests)`)
  const written = await client.written()
  const missing = acknowledged.filter((name) => written.get(name) !== `content of ${name}`)
  figure(story, `${who}: acknowledged writes, of which lost`, `${acknowledged.length}, ${missing.length}`)
  expect([missing, account.lost]).toEqual([[], []])
  return unavailable(account)
}

export const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(1)} s`
