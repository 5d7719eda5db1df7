/** A real cluster for stories: our own commands, in a folder of its own, and ways to look into its nodes. */

import { copyFileSync, existsSync, linkSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import type { ClusterRecord } from '../../src/programs/node-supervisor/layout.ts'
import { own, storyFolder } from '../support/abandoned-clusters.ts'
import { type CommandResult, finished } from '../support/command-result.ts'
import { type Traces, traces } from './host.ts'

const repository = join(import.meta.dir, '..', '..')

/** One cluster of a story. */
export class TestCluster {
  readonly home: string
  readonly state: string
  readonly env: Record<string, string>

  constructor(readonly name: string) {
    // Not below /tmp where that is in memory: containers' layers need a file system that takes an overlay.
    this.home = mkdtempSync(storyFolder)
    own(this.home)
    this.state = join(this.home, 'clusters')
    // An image of its own, so that its loop device can be distinguished from those of other clusters; a folder is used as it is.
    const source = process.env.ICHOR_ROOTFS ?? join(repository, 'dist', 'rootfs.node.sqsh')
    const image = statSync(source).isDirectory() ? source : join(this.home, 'rootfs.sqsh')
    if (image !== source) linkOrCopy(source, image)
    this.env = {
      ICHOR_ROOTFS: image,
      TALOS_HOME: this.home,
      TALOSCONFIG: join(this.home, 'config'),
      KUBECONFIG: join(this.home, 'kubeconfig'),
      HOME: this.home,
    }
  }

  /** Starts talosctl, for stories that do not wait for its end. */
  start(...args: string[]) {
    const binary = process.env.ICHOR_TALOSCTL ?? join(repository, 'dist', 'talosctl')
    return Bun.spawn([binary, ...args], {
      cwd: repository,
      env: { ...process.env, ...this.env },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
  }

  /** Runs talosctl to its end. */
  async talosctl(...args: string[]): Promise<CommandResult> {
    const child = this.start(...args)
    return finished(child)
  }

  /** Runs a command on one node, whose address goes behind the command's name. */
  on(node: string, ...[command = '', ...args]: string[]): Promise<CommandResult> {
    return this.talosctl(command, '-n', node, ...args)
  }

  /** `cluster create` with this cluster's name; fails the story when it fails. */
  async create(...args: string[]): Promise<CommandResult> {
    const result = await this.talosctl('cluster', 'create', '--name', this.name, '--wait-timeout', '4m', ...args)
    if (result.code !== 0) await this.printState()
    return succeeded(result)
  }

  /** Prints what is known of the cluster's nodes and pods, for the reader of a failure. */
  private async printState(): Promise<void> {
    if (!existsSync(this.env.KUBECONFIG ?? '')) return
    for (const args of [
      ['get', 'nodes,pods', '-A', '-o', 'wide'],
      ['get', 'events', '-A', '--sort-by=.lastTimestamp'],
    ]) {
      const { stdout, stderr } = await this.kubectl(['--request-timeout=10s', ...args])
      console.log(`kubectl ${args.join(' ')}\n${stderr}${stdout.split('\n').slice(-60).join('\n')}`)
    }
  }

  /** `cluster start` of this cluster; returns what it reports, and fails the story when it fails. */
  async startAgain(...args: string[]): Promise<string> {
    return succeeded(await this.talosctl('cluster', 'start', '--name', this.name, '--wait-timeout', '4m', ...args)).stderr
  }

  /** `cluster destroy` of this cluster. */
  async destroy(...args: string[]): Promise<CommandResult> {
    return this.talosctl('cluster', 'destroy', '--name', this.name, '--force', ...args)
  }

  /** Runs kubectl with the kubeconfig that create merged. */
  async kubectl(args: string[], input?: string): Promise<CommandResult> {
    const child = Bun.spawn([join(repository, 'dist', 'kubectl'), ...args], {
      env: { ...process.env, ...this.env },
      stdin: input === undefined ? 'ignore' : Buffer.from(input),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    return finished(child)
  }

  /** The output of kubectl as an object. */
  async objects(...args: string[]): Promise<{ items: KubeItem[] }> {
    return JSON.parse(succeeded(await this.kubectl([...args, '-o', 'json'])).stdout)
  }

  /** The request that created the cluster. */
  record(): ClusterRecord {
    return JSON.parse(readFileSync(join(this.state, this.name, 'cluster.json'), 'utf8'))
  }

  /** The nodes as the cluster's record has them. */
  nodes(): ClusterRecord['nodes'] {
    return this.record().nodes
  }

  /** The host's pid of a node's init. */
  initOf(node: string): number {
    return JSON.parse(readFileSync(join(this.state, this.name, 'runc', node, 'state.json'), 'utf8')).init_process_pid
  }

  /** The host's pids of all processes of a node. */
  processesIn(node: string): number[] {
    return descendants(this.initOf(node))
  }

  /** The host's pid of a process in a node whose command line starts so; undefined when there is none. */
  processIn(node: string, commandLine: string): number | undefined {
    const init = this.initOf(node)
    for (const pid of descendants(init)) {
      try {
        if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').startsWith(commandLine)) return pid
      } catch {
        // It ended meanwhile.
      }
    }
    return undefined
  }

  /** Runs a script of the runtime in the network namespace of a process. */
  async inNetworkOf(pid: number, script: string): Promise<CommandResult> {
    const child = Bun.spawn(['nsenter', '-t', String(pid), '-n', process.execPath, '-e', script], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    return finished(child)
  }

  /** The addresses that a name server gives for a name, queried from the network of a process. Rejects when there are none. */
  async resolve(pid: number, server: string, name: string, family: 'IPv4' | 'IPv6' = 'IPv4'): Promise<string[]> {
    const script = `const { Resolver } = require('node:dns').promises
      const resolver = new Resolver({ timeout: 2000, tries: 2 })
      resolver.setServers(['${isIPv6(server) ? `[${server}]` : server}:53'])
      console.log(JSON.stringify(await resolver.${family === 'IPv6' ? 'resolve6' : 'resolve4'}('${name}')))`
    return JSON.parse(succeeded(await this.inNetworkOf(pid, script)).stdout)
  }

  /** What of this cluster is on the host. */
  traces(): Traces {
    return traces(this.state, this.name)
  }

  /** Takes the folder away. */
  close(): void {
    rmSync(this.home, { recursive: true, force: true })
  }

  /** What is left to do at the end of a story. */
  async end(): Promise<void> {
    await this.destroy()
    this.close()
  }
}

/** The parts of a Kubernetes object that stories look at. */
export interface KubeItem {
  metadata: { name: string; labels?: Record<string, string>; uid: string; deletionTimestamp?: string }
  spec: { nodeName?: string; clusterIP?: string }
  status: {
    phase?: string
    podIP?: string
    conditions?: { type: string; status: string }[]
    containerStatuses?: { restartCount: number }[]
    nodeInfo?: { bootID: string }
  }
}

/** Returns a result, or throws its output when the command failed. */
export function succeeded(result: CommandResult): CommandResult {
  if (result.code !== 0) throw new Error(`exit code ${result.code}: ${result.stderr}${result.stdout}`)
  return result
}

/** Retries until a call succeeds; throws its last error on timeout. */
export async function eventually<T>(ask: () => Promise<T>, seconds = 90): Promise<T> {
  const end = performance.now() + seconds * 1000
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (performance.now() > end) throw error
    }
    await Bun.sleep(200)
  }
}

function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch {
    copyFileSync(from, to)
  }
}

function descendants(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
    return [pid, ...children.flatMap(descendants)]
  } catch {
    return []
  }
}
