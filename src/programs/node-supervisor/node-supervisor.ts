/**
 * The supervisor: one detached process for each node of a cluster on this host, and one for the cluster's gateway.
 * It records itself in the cluster's journal before it does anything, and stops when the cluster is being destroyed.
 */

import { existsSync, mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { messageOf } from '../../wire/error-message.ts'
import { Journal } from './journal.ts'
import { clusterPaths, nodePaths } from './layout.ts'
import { LockedError, lock } from './lock.ts'
import { identify } from './process-identity.ts'
import { watchSupervisors } from './watch.ts'

const usage = 'usage: ichor node-supervisor --node-dir <directory of a node> | --gateway-of <directory of a cluster>'

/** The program. */
export async function main(args: string[]): Promise<number> {
  const [flag, directory, rest] = args
  if ((flag !== '--node-dir' && flag !== '--gateway-of') || !directory?.startsWith('/') || rest !== undefined) {
    console.error(usage)
    return 64
  }
  const self = identify(process.pid)
  if (!self) {
    console.error('node-supervisor: /proc is not mounted')
    return 71
  }
  const isNode = flag === '--node-dir'
  const cluster = clusterPaths(isNode ? nodePaths(directory).cluster : directory)
  const own = isNode ? directory : cluster.gateway
  if (existsSync(cluster.tombstone) || !existsSync(cluster.record)) {
    console.error(`node-supervisor: "${cluster.directory}" is no cluster, or is being destroyed`)
    return 66
  }
  const node = isNode ? basename(directory) : undefined
  new Journal(cluster.journal).write({ kind: 'process', ...self, node })
  // Destroy may have read the journal just before the line above: it writes its tombstone before it reads.
  if (existsSync(cluster.tombstone)) return 66

  const abort = new AbortController()
  process.on('SIGTERM', () => abort.abort())
  process.on('SIGINT', () => abort.abort())
  process.on('SIGHUP', () => {})
  try {
    mkdirSync(own, { recursive: true, mode: 0o700 })
    const unlock = lock(join(own, 'supervisor.lock'))
    const unwatch = watchSupervisors(cluster.directory, isNode ? 'gateway' : 'nodes', () => abort.abort())
    // One that is ending, as when the host goes down, restarts no other.
    abort.signal.addEventListener('abort', unwatch)
    try {
      if (isNode) await (await import('./supervise-node.ts')).superviseNode(directory, self, abort.signal)
      else await (await import('./serve-gateway.ts')).serveGateway(directory, abort.signal, (reload) => process.on('SIGHUP', reload))
    } finally {
      unwatch()
      if (existsSync(own)) unlock()
    }
    return 0
  } catch (error) {
    console.error(`node-supervisor: ${messageOf(error)}`)
    return error instanceof LockedError ? 75 : 1
  }
}
