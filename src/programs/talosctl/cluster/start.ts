/** Brings clusters back as they were before a reboot of the host, or before they were stopped: nothing of them is made again but what a reboot takes. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../../wire/error-message.ts'
import { type ClusterRecord, clusterPaths, type NodeRecord, nodeDirectory, readCluster } from '../../node-supervisor/layout.ts'
import { ExitCode, UsageError } from '../failure.ts'
import type { Io } from '../io.ts'
import { checkHostAgain } from './check-host.ts'
import { describe } from './closing.ts'
import { reloadGateway } from './create.ts'
import { machineEndpoints } from './engine/reach.ts'
import { awaitHealth } from './health.ts'
import { clusters } from './host/preflight.ts'
import { checkUnits } from './host/unit.ts'
import { awaitApi, awaitConfigured } from './node-api.ts'
import { readAdministrator } from './plan/configs.ts'
import { Progress } from './progress.ts'
import { nodeTrouble, provideCluster, provideNode } from './provision.ts'
import { holdCluster, noCluster } from './run-destroy.ts'
import { isRunning } from './show.ts'
import { setRestart } from './with-host.ts'

/** The request to `cluster start`. */
export interface StartOptions {
  state: string
  /** The cluster; every cluster of the folder when it is left out. */
  name?: string | undefined
  /** Whether to wait until the cluster is healthy. */
  wait: boolean
  /** Milliseconds. */
  waitTimeout: number
  /** Whether the host starts the cluster from now on; left as it is when undefined. */
  withHost?: boolean | undefined
}

/** Starts one cluster or all; one that does not start does not keep the others from it. Exit code 1 when one did not. */
export async function startClusters(io: Io, options: StartOptions): Promise<void> {
  const { state, name, withHost } = options
  const names = name === undefined ? clusters(state).map((cluster) => cluster.name) : [name]
  if (names.length === 0) throw new UsageError(`there is no cluster in "${state}": name another folder with --state`)
  for (const each of names) {
    if (!existsSync(clusterPaths(join(state, each)).record)) throw noCluster(state, each)
    if (withHost) checkRestart(join(state, each), each)
  }
  let failed = 0
  for (const each of names) {
    const directory = join(state, each)
    try {
      await startCluster(io, directory, options)
      if (withHost !== undefined) await setRestart(io, directory, withHost)
    } catch (error) {
      if (io.signal.aborted) throw error
      failed++
      io.stderr.write(`cluster "${each}": ${messageOf(error)}\n`)
    }
  }
  if (failed > 0) throw new ExitCode(1)
}

function checkRestart(directory: string, name: string): void {
  if (readCluster(directory)?.engine)
    throw new UsageError(
      `--restart-with-host: cluster "${name}" is in Docker or Podman: let the system start the engine, and the nodes with "talosctl cluster start"`,
    )
  checkUnits(name)
}

async function startCluster(io: Io, directory: string, { wait, waitTimeout }: StartOptions): Promise<void> {
  const record = readCluster(directory)
  if (!record) throw new Error('it was destroyed meanwhile')
  const { name } = record
  if (existsSync(clusterPaths(directory).tombstone))
    throw new UsageError(`it is half destroyed: finish it with "talosctl cluster destroy --name ${name}"`)
  if (!record.engine) checkHostAgain(record)
  const unlock = holdCluster(directory)
  try {
    const progress = new Progress(io)
    const present = !record.engine && isRunning(directory)
    if (record.engine) await startInEngine(io, record, record.engine.socket, progress)
    else await startNodes(directory, record, progress)
    if (wait) await awaitCluster(io, directory, record, waitTimeout, progress)
    io.stderr.write(`cluster "${name}" ${present ? 'is running' : 'was started'} with ${describe(record.nodes)}\n`)
  } finally {
    if (existsSync(directory)) unlock()
  }
}

async function startInEngine(io: Io, record: ClusterRecord, socket: string, progress: Progress): Promise<void> {
  const { Engine } = await import('./engine/client.ts')
  const { startContainers } = await import('./engine/provision.ts')
  await progress.phase('nodes', async () => startContainers(await Engine.open(socket, io.signal), record))
}

/** Starts every node, also when one does not start; throws with the reasons of those. */
async function startNodes(directory: string, record: ClusterRecord, progress: Progress): Promise<void> {
  const { outside } = await progress.phase('host', () => provideCluster(directory, record))
  if (!outside) progress.line('no nftables on this host: nodes reach each other and this host, nothing beyond')
  reloadGateway(directory)
  await progress.phase('nodes', async (detail) => {
    let up = 0
    const nodes = staying(record)
    const results = await Promise.allSettled(
      nodes.map(async (node) => {
        await provideNode(directory, record, node)
        detail(`${++up} of ${nodes.length}`)
      }),
    )
    const reasons = results.flatMap((result) => (result.status === 'rejected' ? [messageOf(result.reason)] : []))
    if (reasons.length > 0) throw new Error(reasons.join('\n'))
  })
}

async function awaitCluster(io: Io, directory: string, record: ClusterRecord, timeout: number, progress: Progress): Promise<void> {
  const { name } = record
  const proceed = `go on with "talosctl cluster create --name ${name}"`
  if (!existsSync(join(directory, 'bootstrapped'))) {
    progress.line(`cluster "${name}" was never bootstrapped: ${proceed}`)
    return
  }
  const { credentials } = await readAdministrator(directory, name)
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(timeout)])
  const nodes = staying(record)
  await progress.phase('machine API', async () => {
    if (record.engine) return awaitApi(machineEndpoints(record)[0] ?? '', credentials, signal)
    const results = await Promise.allSettled(
      nodes.map((node) =>
        awaitConfigured(node.ip, { credentials, signal, trouble: () => nodeTrouble(nodeDirectory(directory, node.name)) }).catch(
          (error) => {
            throw new Error(`${node.name}: ${messageOf(error)}: ${proceed}`)
          },
        ),
      ),
    )
    const reasons = results.flatMap((result) => (result.status === 'rejected' ? [messageOf(result.reason)] : []))
    if (reasons.length > 0) throw new Error(reasons.join('\n'))
  })
  await awaitHealth(io, { ...record, nodes }, credentials, progress, { signal, timeout, readiness: true })
}

/** The nodes that are not being removed. */
function staying({ nodes }: ClusterRecord): NodeRecord[] {
  return nodes.filter(({ leaving }) => !leaving)
}
