import { existsSync } from 'node:fs'
import { type ClusterRecord, clusterPaths } from '../../node-supervisor/layout.ts'
import { describe } from '../failure.ts'
import type { Io } from '../io.ts'
import { machineEndpoints } from './engine/reach.ts'
import { readAdministrator } from './plan/configs.ts'

/** Milliseconds for all of it. */
const timeout = 5 * 60_000
/** Files that are fetched from one node at the same time. */
const workers = 4

/** Writes a support bundle of all nodes of a cluster; a failure is reported and keeps nobody from destroying it. */
export async function saveSupport(io: Io, directory: string, record: ClusterRecord | undefined, file: string): Promise<void> {
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(timeout)])
  try {
    if (!record || !existsSync(clusterPaths(directory).talosconfig))
      throw new Error('the cluster was never finished, nothing reaches its nodes')
    const { Cluster } = await import('../cluster.ts')
    const { runSupport } = await import('../commands/diagnostics/support.ts')
    const { credentials } = await readAdministrator(directory, record.name)
    const endpoints = machineEndpoints(record)
    const nodes = record.nodes.map(({ ip }) => ip)
    const cluster = new Cluster(io, { endpoints, nodes, tls: credentials, source: 'cluster destroy' })
    try {
      await runSupport({ ...io, signal }, cluster, { numWorkers: workers, output: file })
    } finally {
      await cluster.close()
    }
  } catch (error) {
    io.signal.throwIfAborted()
    io.stderr.write(`support archive "${file}": ${signal.aborted ? 'not finished within 5 minutes' : describe(error)}\n`)
  }
}
