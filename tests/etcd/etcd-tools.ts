/** etcd's own client on a cluster of a story: writes keys, reads the whole store back, and lists the members. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { succeeded, type TestCluster } from '../cluster/cluster.ts'
import { type CommandResult, finished } from '../support/command-result.ts'

const repository = join(import.meta.dir, '..', '..')
/** etcd accepts this many operations in one transaction. */
const perTransaction = 120

/** A key as etcd returns it: base64, with its revisions. */
export interface StoredKey {
  readonly key: string
  readonly value: string
  readonly create_revision: number
  readonly mod_revision: number
  readonly version: number
}

/** A member as etcd lists it. */
export interface ListedMember {
  /** 16 hexadecimal digits. */
  readonly ID: string
  /** Absent until it has started. */
  readonly name?: string
  readonly peerURLs: readonly string[]
  /** Absent of a voting member. */
  readonly isLearner?: boolean
}

/** Discarding history every five minutes, as Kubernetes does, would take what stories read at an earlier revision. */
export const withHistory = [
  '--config-patch-control-plane',
  JSON.stringify({ cluster: { apiServer: { extraArgs: { 'etcd-compaction-interval': '0s' } } } }),
]

/** Runs a program to its end. */
export async function run(argv: readonly string[], { cwd = repository, input = '' } = {}): Promise<CommandResult> {
  const child = Bun.spawn([...argv], { cwd, stdin: Buffer.from(input), stdout: 'pipe', stderr: 'pipe' })
  return finished(child)
}

/** Builds a tool of a Go module that is pinned in the tests. */
export async function builtTool(folder: string, name: string, module: string, tool: string): Promise<string> {
  const path = join(folder, name)
  succeeded(await run(['go', 'build', '-o', path, tool], { cwd: join(repository, module) }))
  return path
}

/** etcdctl with the node's own credentials. */
export class EtcdTool {
  readonly folder = mkdtempSync('/var/tmp/ichor-etcd-')
  #etcdctl = ''
  #credentials: readonly string[] = []

  constructor(readonly cluster: TestCluster) {}

  async build(): Promise<void> {
    this.#etcdctl = await builtTool(this.folder, 'etcdctl', 'tests/interop/etcdctl', 'go.etcd.io/etcd/etcdctl/v3')
  }

  /** Fetches the administrator's certificate of etcd from a node. */
  async login(node: string): Promise<void> {
    const file = async (name: string) => {
      const { stdout } = succeeded(await this.cluster.talosctl('-n', node, 'read', `/system/secrets/etcd/${name}`))
      const path = join(this.folder, name)
      writeFileSync(path, stdout, { mode: 0o600 })
      return path
    }
    this.#credentials = ['--cacert', await file('ca.crt'), '--cert', await file('admin.crt'), '--key', await file('admin.key')]
  }

  /** Runs etcdctl on the members of these nodes. */
  async etcdctl(nodes: readonly string[], args: readonly string[], input?: string): Promise<string> {
    const endpoints = nodes.map((node) => `https://${node}:2379`).join(',')
    const argv = [this.#etcdctl, '--endpoints', endpoints, ...this.#credentials, '--command-timeout=20s', ...args]
    return succeeded(await run(argv, input === undefined ? {} : { input })).stdout
  }

  /** Writes `count` keys below a prefix. */
  async fill(node: string, prefix: string, count: number): Promise<void> {
    for (let first = 0; first < count; first += perTransaction) {
      const puts = Array.from({ length: Math.min(perTransaction, count - first) }, (_, i) => `put ${prefix}${first + i} value-${first + i}`)
      await this.etcdctl([node], ['txn'], `\n${puts.join('\n')}\n\n\n`)
    }
  }

  /** Every key of the store as it was at a revision; `alone` reads what this member has stored, without the others. */
  async keysAt(node: string, revision: number, { alone = false } = {}): Promise<StoredKey[]> {
    const consistency = `--consistency=${alone ? 's' : 'l'}`
    const stdout = await this.etcdctl([node], ['get', '', '--prefix', '--rev', String(revision), consistency, '-w', 'json'])
    return (JSON.parse(stdout).kvs ?? []) as StoredKey[]
  }

  /** The members of the cluster, by what the members of these nodes agree on. */
  async members(nodes: readonly string[]): Promise<ListedMember[]> {
    const text = await this.etcdctl(nodes, ['member', 'list', '-w', 'json'])
    // Ids are numbers of 64 bits, for which those of JavaScript are too small.
    const hexId = (_: string, id: string) => `"ID":"${BigInt(id).toString(16).padStart(16, '0')}"`
    return JSON.parse(text.replaceAll(/"ID":(\d+)/g, hexId)).members
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
