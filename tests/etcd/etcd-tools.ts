/** etcd's own client on a cluster of a story: writes keys and reads the whole store back. */

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

  /** Every key of the store as it was at a revision. */
  async keysAt(node: string, revision: number): Promise<StoredKey[]> {
    const stdout = await this.etcdctl([node], ['get', '', '--prefix', '--rev', String(revision), '-w', 'json'])
    return (JSON.parse(stdout).kvs ?? []) as StoredKey[]
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
